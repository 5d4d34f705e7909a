// SPDX-License-Identifier: Apache-2.0

// Package version tells which version of the programs this is.
package version

import (
	"cmp"
	"runtime/debug"
)

// Of is the version that was set with -ldflags, or that of the module, which the go command takes from the tags and the
// revision of a checkout.
func Of(set string) string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		set = cmp.Or(set, info.Main.Version)
	}
	return cmp.Or(set, "unknown")
}
