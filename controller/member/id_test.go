// SPDX-License-Identifier: Apache-2.0

package member

import (
	"strings"
	"testing"
)

func TestValidateID(t *testing.T) {
	for id, valid := range map[string]bool{
		"east":                  true,
		"east.registry":         true,
		strings.Repeat("a", 63): true,
		// A UID, as KEP-2149 suggests.
		"721ab723-13bc-11e5-aec2-42010af0021e": true,
		strings.Repeat("a", 31) + ".bb":        true,
		"":                                     false,
		"East":                                 false,
		"a.b.c":                                false,
		"east.":                                false,
		".registry":                            false,
		strings.Repeat("a", 64):                false,
		strings.Repeat("a", 32) + "." + strings.Repeat("b", 31): false,
	} {
		if err := ValidateID(id); (err == nil) != valid {
			t.Errorf("%q: got %v, want valid %t", id, err, valid)
		}
	}
}
