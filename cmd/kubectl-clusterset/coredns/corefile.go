// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coredns/caddy/caddyfile"
)

// plugin is the directive that is put into the Corefile.
const plugin = "multicluster"

// A Corefile is the text of one, and where its parts are.
type Corefile struct {
	lines  []string
	blocks []caddyfile.ServerBlock
}

// ParseCorefile reads a Corefile as CoreDNS does, but for the files that it
// imports: they are where CoreDNS runs, and the Corefile has no business with
// those that are here.
func ParseCorefile(text string) (*Corefile, error) {
	blocks, err := caddyfile.Parse("Corefile", strings.NewReader(withoutFiles(text)), nil)
	if err != nil {
		return nil, fmt.Errorf("the Corefile does not parse: %w", err)
	}
	return &Corefile{lines: strings.Split(text, "\n"), blocks: blocks}, nil
}

var (
	importLine  = regexp.MustCompile(`(?m)^[ \t]*import[ \t]+([^\s#]+).*$`)
	snippetLine = regexp.MustCompile(`(?m)^[ \t]*\(([^\s()]+)\)[ \t]*\{`)
)

// withoutFiles is the text with the lines emptied that import anything but
// snippets of it.
func withoutFiles(text string) string {
	snippets := map[string]bool{}
	for _, match := range snippetLine.FindAllStringSubmatch(text, -1) {
		snippets[match[1]] = true
	}
	return importLine.ReplaceAllStringFunc(text, func(line string) string {
		if match := importLine.FindStringSubmatch(line); snippets[match[1]] {
			return line
		}
		return ""
	})
}

// String is the text.
func (c *Corefile) String() string { return strings.Join(c.lines, "\n") }

// Serves tells whether the server block that answers for a zone has the plugin
// for it.
func (c *Corefile) Serves(zone string) bool { return c.directive(zone) != nil }

// Option is what the plugin's block for a zone says of an option, nil where it
// does not say it. One without arguments is an empty list.
func (c *Corefile) Option(zone, name string) []string {
	directive := c.directive(zone)
	for i := 1; i < len(directive); i++ {
		if directive[i].Text != name || directive[i].Line == directive[i-1].Line {
			continue
		}
		words := []string{}
		for _, token := range directive[i+1:] {
			if token.Line != directive[i].Line || token.Text == "}" {
				break
			}
			words = append(words, token.Text)
		}
		return words
	}
	return nil
}

// directive is the plugin for a zone in the server block that answers for it,
// nil where that has none.
func (c *Corefile) directive(zone string) []caddyfile.Token {
	block := c.blockOf(zone)
	if block == nil {
		return nil
	}
	for _, directive := range directives(block.Tokens[plugin]) {
		zones := arguments(directive)
		if len(zones) == 0 {
			zones = keysOf(*block)
		}
		if slices.ContainsFunc(zones, func(z string) bool { return normal(z) == normal(zone) || normal(z) == "." }) {
			return directive
		}
	}
	return nil
}

// Enable is the text with a line for the plugin in the server block that
// answers for a zone, before the plugin kubernetes where the block has that.
// Nothing else changes, and nothing at all where the block has it already.
func (c *Corefile) Enable(zone string) (string, error) {
	if c.Serves(zone) {
		return c.String(), nil
	}
	block := c.blockOf(zone)
	if block == nil {
		return "", fmt.Errorf("no server block of the Corefile answers for %s: add one, or one for the root zone", zone)
	}
	at := 0
	for name, tokens := range block.Tokens {
		if len(tokens) == 0 {
			continue
		}
		if name == "kubernetes" {
			at = tokens[0].Line
			break
		}
		if at == 0 || tokens[0].Line < at {
			at = tokens[0].Line
		}
	}
	if at == 0 || at > len(c.lines) {
		return "", fmt.Errorf("the server block %s of the Corefile is empty: add the line %s %s to it", strings.Join(block.Keys, " "), plugin, zone)
	}
	line := c.lines[at-1]
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	end := line[len(strings.TrimRight(line, "\r")):]
	return strings.Join(slices.Insert(slices.Clone(c.lines), at-1, indent+plugin+" "+strings.TrimSuffix(zone, ".")+end), "\n"), nil
}

// Disable is the text without the plugin, in whichever server block it stands.
func (c *Corefile) Disable() string {
	drop := map[int]bool{}
	for i := range c.blocks {
		for _, directive := range directives(c.blocks[i].Tokens[plugin]) {
			for line := directive[0].Line; line <= directive[len(directive)-1].Line; line++ {
				drop[line] = true
			}
		}
	}
	var kept []string
	for i, line := range c.lines {
		if !drop[i+1] {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// directives cuts the tokens of one plugin in a block, which may have it more
// than once.
func directives(tokens []caddyfile.Token) [][]caddyfile.Token {
	var cut [][]caddyfile.Token
	depth := 0
	for i, token := range tokens {
		if depth == 0 && token.Text == plugin && (i == 0 || tokens[i-1].Line < token.Line) {
			cut = append(cut, nil)
		}
		switch token.Text {
		case "{":
			depth++
		case "}":
			depth--
		}
		if len(cut) > 0 {
			cut[len(cut)-1] = append(cut[len(cut)-1], token)
		}
	}
	return cut
}

// arguments are the words after the name of a plugin.
func arguments(directive []caddyfile.Token) []string {
	var words []string
	for _, token := range directive[1:] {
		if token.Text == "{" {
			break
		}
		words = append(words, token.Text)
	}
	return words
}

// blockOf is the server block that answers for a zone: the one with the longest
// zone of its own that the zone is below. nil where there is none.
func (c *Corefile) blockOf(zone string) *caddyfile.ServerBlock {
	var best *caddyfile.ServerBlock
	length := -1
	for i := range c.blocks {
		for _, key := range keysOf(c.blocks[i]) {
			own := normal(key)
			if (own == "." || normal(zone) == own || strings.HasSuffix(normal(zone), "."+own)) && len(own) > length {
				best, length = &c.blocks[i], len(own)
			}
		}
	}
	return best
}

// keysOf are the zones of a server block.
func keysOf(block caddyfile.ServerBlock) []string {
	zones := make([]string, 0, len(block.Keys))
	for _, key := range block.Keys {
		if _, rest, scheme := strings.Cut(key, "://"); scheme {
			key = rest
		}
		if at := strings.LastIndex(key, ":"); at >= 0 {
			key = key[:at]
		}
		zones = append(zones, strings.TrimSuffix(key, ","))
	}
	return zones
}

// normal is a zone in lower case, with a dot at its end.
func normal(zone string) string { return strings.ToLower(strings.TrimSuffix(zone, ".")) + "." }
