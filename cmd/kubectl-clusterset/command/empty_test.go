// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"
)

// TestEmptyNamesAreRefused, which unset variables of a shell leave: an empty context would be the current one, and an
// empty cluster every one. Nobody is asked.
func TestEmptyNamesAreRefused(t *testing.T) {
	server := newAPI(t, nil, nil)
	for _, line := range []string{
		`join east ''`, `join '' east`, `leave '' --contexts east,west`, `drain '' --contexts east,west`, `undrain ''`,
		`export '' --context west`, `explain '' --context west`, `leave west --context ''`, `leave west --contexts ''`,
		`leave west --contexts west,`, `drain west --contexts ,west`, `undrain west --contexts east,,west`, `export db --contexts ,`,
		`unexport db --contexts ''`, `status --contexts east,`, `explain db --contexts ''`, `check --contexts ,`,
		`version --contexts ''`, `sysdump --contexts west,`, `coredns enable --contexts ''`, `coredns disable --contexts east,`,
		`test connectivity --contexts east,`,
	} {
		args := strings.Fields(line)
		for i := range args {
			args[i] = strings.Trim(args[i], "'")
		}
		if _, _, err := invoke(t, server.URL, args...); exitStatus(err) != exitUsage {
			t.Errorf("%s: %v", line, err)
		}
	}
	if seen := server.seen(); len(seen) > 0 {
		t.Errorf("it asked %v", seen)
	}
}
