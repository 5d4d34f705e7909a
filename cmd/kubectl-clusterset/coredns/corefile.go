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
func (c *Corefile) Option(zone, name string) []string { return option(c.directive(zone), name) }

// option is the same for the block of a directive.
func option(directive []caddyfile.Token, name string) []string {
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
	block, _ := c.blockOf(zone)
	if block == nil {
		return nil
	}
	for _, directive := range directives(block, plugin) {
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

// Plugins by which a Corefile answers for the zone of a set.
const (
	// ByMulticluster is the plugin of this project.
	ByMulticluster = plugin
	// ByKubernetes is the stock plugin with its option multicluster.
	ByKubernetes = "kubernetes"
	// ByForward is another server.
	ByForward = "forward"
)

// By returns the plugin by which the Corefile answers for a zone: one of the
// constants above, or an empty string if it shows none. A forward of the root
// zone in the server block of the root zone does not count: it is for names
// outside of the cluster.
func (c *Corefile) By(zone string) string {
	block, own := c.blockOf(zone)
	switch {
	case block == nil:
		return ""
	case c.Serves(zone):
		return ByMulticluster
	}
	for _, directive := range directives(block, ByKubernetes) {
		if slices.ContainsFunc(option(directive, "multicluster"),
			func(z string) bool { return normal(z) == normal(zone) }) {
			return ByKubernetes
		}
	}
	for _, directive := range directives(block, ByForward) {
		from := "."
		if words := arguments(directive); len(words) > 0 {
			from = normal(words[0])
		}
		if below(zone, from) && (from != "." || own != ".") {
			return ByForward
		}
	}
	return ""
}

// Enable is the text with a line for the plugin in the server block that
// answers for a zone, before the plugin kubernetes where the block has that.
// Nothing else changes, and nothing at all where the block has it already.
func (c *Corefile) Enable(zone string) (string, error) {
	switch by := c.By(zone); by {
	case ByMulticluster:
		return c.String(), nil
	case ByKubernetes, ByForward:
		return "", fmt.Errorf("the Corefile already answers for %s with the plugin %s, which %s would replace: remove that from the Corefile first if this is what you want", strings.TrimSuffix(zone, "."), by, plugin)
	}
	block, _ := c.blockOf(zone)
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
		return "", fmt.Errorf("the server block %s of the Corefile is empty: add the line %s %s to it",
			strings.Join(block.Keys, " "), plugin, zone)
	}
	line := c.lines[at-1]
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	end := line[len(strings.TrimRight(line, "\r")):]
	return strings.Join(slices.Insert(slices.Clone(c.lines), at-1, indent+plugin+" "+strings.TrimSuffix(zone, ".")+end),
		"\n"), nil
}

// Disable is the text without the directive that Enable adds for a zone,
// whatever options it has been given since. Directives for other zones, for
// several zones and for those of their server block stay.
func (c *Corefile) Disable(zone string) string {
	drop := map[int]bool{}
	if directive := c.directive(zone); directive != nil && len(arguments(directive)) == 1 {
		for line := directive[0].Line; line <= directive[len(directive)-1].Line; line++ {
			drop[line] = true
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

// Uses tells whether any server block has the plugin, for whichever zone.
func (c *Corefile) Uses() bool {
	return slices.ContainsFunc(c.blocks, func(block caddyfile.ServerBlock) bool {
		return len(
			block.Tokens[plugin]) > 0
	})
}

// directives cuts the tokens of a plugin in a block, which may have it more than
// once.
func directives(block *caddyfile.ServerBlock, name string) [][]caddyfile.Token {
	tokens := block.Tokens[name]
	var cut [][]caddyfile.Token
	depth := 0
	for i, token := range tokens {
		if depth == 0 && token.Text == name && (i == 0 || tokens[i-1].Line < token.Line) {
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
// zone of its own that the zone is in. It is returned with that zone, and nil if
// there is none.
func (c *Corefile) blockOf(zone string) (best *caddyfile.ServerBlock, of string) {
	for i := range c.blocks {
		for _, key := range keysOf(c.blocks[i]) {
			if own := normal(key); below(zone, own) && len(own) > len(of) {
				best, of = &c.blocks[i], own
			}
		}
	}
	return best, of
}

// below tells whether a zone is another one, in normal form, or in it.
func below(zone, other string) bool {
	return other == "." || normal(zone) == other || strings.HasSuffix(normal(zone), "."+other)
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
