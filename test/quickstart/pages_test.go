// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fence is a block of commands, which may be indented as a part of a list.
var fence = regexp.MustCompile("(?ms)^( *)```sh\n(.*?)^ *```$")

// commands are the blocks of commands of a page, in their order; of one section of it, where its heading is given.
func commands(t testing.TB, page, heading string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, page))
	must(t, err)
	text := string(content)
	if heading != "" {
		_, after, found := strings.Cut(text, "\n"+heading+"\n")
		if !found {
			t.Fatalf("%s has no heading %q", page, heading)
		}
		text, _, _ = strings.Cut(after, "\n## ")
	}
	var all []string
	for _, match := range fence.FindAllStringSubmatch(text, -1) {
		var lines []string
		for line := range strings.Lines(match[2]) {
			lines = append(lines, strings.TrimPrefix(line, match[1]))
		}
		all = append(all, strings.Join(lines, ""))
	}
	return all
}
