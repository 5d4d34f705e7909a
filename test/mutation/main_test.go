// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestEveryMutantHasItsPlace: who changes code that a mutant changes brings the list up to date.
func TestEveryMutantHasItsPlace(t *testing.T) {
	for _, m := range mutants {
		if _, err := m.apply("../.."); err != nil {
			t.Errorf("%s: %v", m, err)
		}
		if m.harm == "" || m.text == m.replacement {
			t.Errorf("%s: it changes nothing, or does no harm", m)
		}
	}
}
