// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"testing"
)

func TestDirectivesWithoutPluginAreLeftOut(t *testing.T) {
	if got := Directives(); !slices.Equal(got, []string{"metadata", "transfer", "multicluster"}) {
		t.Errorf("got %v, want those that multicluster brings along", got)
	}
}
