// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fence   = regexp.MustCompile("(?ms)^[ \t]*(```|~~~).*?^[ \t]*(```|~~~)[ \t]*$")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *$`)
	named   = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	// characters that GitHub drops from the anchor of a heading
	unanchored = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors of a document: of its headings, and explicit ones.
func anchors(text string) []string {
	var all []string
	seen := map[string]int{}
	for _, title := range matches(heading, fence.ReplaceAllString(text, "")) {
		title = link.ReplaceAllString(title, "]")
		anchor := strings.ReplaceAll(unanchored.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		if count := seen[anchor]; count > 0 {
			all = append(all, fmt.Sprintf("%s-%d", anchor, count))
		} else {
			all = append(all, anchor)
		}
		seen[anchor]++
	}
	return append(all, matches(named, text)...)
}

// links returns the targets of a document's links.
func links(text string) []string {
	return matches(link, code.ReplaceAllString(fence.ReplaceAllString(text, ""), ""))
}

// matches returns the first groups of all matches of an expression.
func matches(expression *regexp.Regexp, text string) (found []string) {
	for _, match := range expression.FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// TestLinksLeadSomewhere follows each link of a document to a file of the repository, and to a heading in the file. It
// does not use the network.
func TestLinksLeadSomewhere(t *testing.T) {
	followed := 0
	err := walk(".md", func(path, text string) error {
		for _, target := range links(text) {
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			followed++
			if err := follow(filepath.Join(root, filepath.FromSlash(path)), target); err != nil {
				t.Errorf("%s: link to %s: %v", path, target, err)
			}
		}
		return nil
	})
	must(t, err)
	if followed < 20 {
		t.Errorf("only %d links were found", followed)
	}
}

// follow returns an error if a link in a document has no target.
func follow(document, target string) error {
	name, anchor, anchored := strings.Cut(target, "#")
	to := document
	if name != "" {
		to = filepath.Join(filepath.Dir(document), filepath.FromSlash(name))
	}
	if relative, err := filepath.Rel(root, to); err != nil || strings.HasPrefix(relative, "..") {
		return fmt.Errorf("it leaves the repository")
	}
	if _, err := os.Stat(to); err != nil {
		return err
	}
	if !anchored {
		return nil
	}
	text, err := os.ReadFile(to)
	if err != nil {
		return err
	}
	if !slices.Contains(anchors(string(text)), anchor) {
		return fmt.Errorf("%s has no such heading", filepath.Base(to))
	}
	return nil
}
