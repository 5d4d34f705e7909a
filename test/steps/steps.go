// SPDX-License-Identifier: Apache-2.0

// Package steps says by which calls a test has come to where it fails, so that no helper has to declare itself one.
package steps

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Here are the lines of the tests in this folder that are being executed, the innermost first.
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
