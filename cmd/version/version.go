// SPDX-License-Identifier: Apache-2.0

// Package version tells which version of the programs this is.
package version

import "runtime/debug"

// Of is the version that was set with -ldflags, or that of the module or the revision this was built from.
func Of(set string) string { return of(set, debug.ReadBuildInfo) }

func of(set string, read func() (*debug.BuildInfo, bool)) string {
	if set != "" {
		return set
	}
	info, ok := read()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return "unknown"
}
