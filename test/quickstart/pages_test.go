// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// knownCommands are the commands of a section that has these texts in its blocks, one in each.
func knownCommands(t testing.TB, page, heading string, texts []string) []string {
	t.Helper()
	all := commands(t, page, heading)
	if !slices.EqualFunc(all, texts, strings.Contains) {
		t.Fatalf("%s, %s: the test knows %q, and the commands are %q", page, heading, texts, all)
	}
	return all
}

// commands are the blocks of commands in a section of a page, in their order. They may be indented as a part of a list.
func commands(t testing.TB, page, heading string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, page))
	must(t, err)
	_, text, found := strings.Cut(string(content), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var all []string
	for _, match := range regexp.MustCompile("(?ms)^( *)```sh\n(.*?)^ *```$").FindAllStringSubmatch(text, -1) {
		all = append(all, strings.TrimPrefix(strings.ReplaceAll("\n"+match[2], "\n"+match[1], "\n"), "\n"))
	}
	return all
}
