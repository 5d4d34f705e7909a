// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"path"
	"strings"
	"testing"
)

// TestBudgets limits the size of each part. The limits only go down: a change that makes a part 2 % smaller lowers its
// limit, and a commit that must raise a limit states the reason.
func TestBudgets(t *testing.T) {
	const units = "unit tests and test/"
	lines := map[string]int{}
	folders := map[string]bool{}
	for _, f := range goFiles(t) {
		part, _, _ := strings.Cut(f.path, "/")
		switch {
		// Packages such as exporttest are test code, and deploy has only the program that builds releases.
		case f.test(), part == "test", part == "deploy", strings.HasSuffix(path.Dir(f.path), "test"):
			part = units
		case part == "plugin", part == "controller", part == "cmd":
			folders[path.Dir(f.path)] = true
		}
		lines[part] += strings.Count(f.text, "\n")
	}
	words := 0
	for _, text := range documents(t) {
		words += len(strings.Fields(text))
	}
	for _, each := range []struct {
		what     string
		is, most int
	}{
		{"lines of plugin/", lines["plugin"], 4_072},
		{"lines of controller/", lines["controller"], 13_480},
		{"lines of cmd/", lines["cmd"], 4_696},
		{"lines of " + units, lines[units], 44_278},
		{"packages of plugin/, controller/ and cmd/", len(folders), 30},
		{"words of Markdown", words, 24_115},
	} {
		switch {
		case each.is > each.most:
			t.Errorf("%s: %d, at most %d: leave something out", each.what, each.is, each.most)
		case each.is*100 < each.most*98:
			t.Errorf("%s: %d, at most %d: lower the number", each.what, each.is, each.most)
		}
	}
}
