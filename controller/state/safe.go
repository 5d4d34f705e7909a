// SPDX-License-Identifier: Apache-2.0

package state

import (
	"strconv"
	"strings"
	"unicode"
)

// maxText bounds a text that another cluster may have written, in bytes.
const maxText = 1024

// Safe returns a text that another cluster may have written for an Event or a finding: at most 1 KiB, on one line, and
// without characters that control a terminal.
func Safe(text string) string {
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText-3], "") + "..."
	}
	return Escape(strings.ReplaceAll(text, "\n", "; "))
}

// Escape escapes the characters of a text that control a terminal, apart from line breaks and tabs.
func Escape(text string) string {
	var out strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			out.WriteRune(r)
		} else {
			out.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return out.String()
}
