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
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	if heading != "" {
		_, after, found := strings.Cut(text, "\n"+heading+"\n")
		if !found {
			t.Fatalf("%s has no heading %q", page, heading)
		}
		text, _, _ = strings.Cut(after, "\n## ")
	}
	return blocks(text)
}

func blocks(text string) []string {
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

func TestBlocks(t *testing.T) {
	const text = "1. One:\n\n   ```sh\n   a \\\n     b\n   ```\n\n```yaml\nno: no\n```\n\n```sh\nc\n```\n"
	got := blocks(text)
	if len(got) != 2 || got[0] != "a \\\n  b\n" || got[1] != "c\n" {
		t.Errorf("got %q", got)
	}
}
