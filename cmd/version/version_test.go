// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	info := func(version, revision string) func() (*debug.BuildInfo, bool) {
		return func() (*debug.BuildInfo, bool) {
			i := &debug.BuildInfo{Main: debug.Module{Version: version}}
			if revision != "" {
				i.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: revision}}
			}
			return i, true
		}
	}
	tests := []struct {
		name, set string
		read      func() (*debug.BuildInfo, bool)
		want      string
	}{
		{"set by the linker", "v1.0.0", info("v0.9.0", "abc"), "v1.0.0"},
		{"installed by the go command", "", info("v0.9.0", ""), "v0.9.0"},
		{"built in a checkout", "", info("(devel)", "abc"), "abc"},
		{"built from files alone", "", info("", ""), "unknown"},
		{"built without modules", "", func() (*debug.BuildInfo, bool) { return nil, false }, "unknown"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := of(tc.set, tc.read); got != tc.want {
				t.Errorf("the version is %q, want %q", got, tc.want)
			}
		})
	}
}
