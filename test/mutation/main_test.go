// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/parser"
	"go/token"
	"testing"
)

// TestEveryMutantHasItsPlace: a change of code that a mutant replaces must update the list.
func TestEveryMutantHasItsPlace(t *testing.T) {
	for _, m := range mutants {
		after, err := m.apply("../..")
		if err == nil {
			_, err = parser.ParseFile(token.NewFileSet(), m.file, after, parser.SkipObjectResolution)
		}
		if err != nil {
			t.Errorf("%s: %v", m, err)
		}
		if m.harm == "" || m.text == m.replacement {
			t.Errorf("%s: it changes nothing, or does no harm", m)
		}
	}
}
