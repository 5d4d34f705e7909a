// SPDX-License-Identifier: Apache-2.0

// Package steps returns the call stack of a failure in a test, so that functions need not call testing.T.Helper.
package steps

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Here returns the positions below test/ on the caller's stack, innermost first, one per line.
func Here() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	var text strings.Builder
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if strings.Contains(frame.Function, "/clusterset-dns/test/") {
			folder, file := filepath.Split(frame.File)
			fmt.Fprintf(&text, "\n  at %s/%s:%d", filepath.Base(folder), file, frame.Line)
		}
	}
	return text.String()
}
