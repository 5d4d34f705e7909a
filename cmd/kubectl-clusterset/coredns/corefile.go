// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coredns/caddy/caddyfile"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// plugin is the name of the directive.
const plugin = "multicluster"

// A Corefile is its text and its server blocks.
type Corefile struct {
	lines  []string
	blocks []caddyfile.ServerBlock
	// options are the tokens of the directive multicluster that our image imports, with the snippet for its options.
	options []caddyfile.Token
}

// ParseCorefile parses a Corefile as CoreDNS does, but ignores imported files,
// which exist only in the pods of CoreDNS.
func ParseCorefile(text string) (*Corefile, error) {
	blocks, err := caddyfile.Parse("Corefile", strings.NewReader(withoutFiles(text)), nil)
	if err != nil {
		return nil, fmt.Errorf("the Corefile does not parse: %w", err)
	}
	c := &Corefile{lines: strings.Split(text, "\n"), blocks: blocks}
	if match := optionsLines.FindStringSubmatch(text); match != nil {
		block := "x {\n" + plugin + " {\n" + match[1] + "\n}\n}\n"
		if parsed, err := caddyfile.Parse("Corefile", strings.NewReader(withoutFiles(block)), nil); err == nil {
			c.options = parsed[0].Tokens[plugin]
		}
	}
	return c, nil
}

// optionsLines has the lines of the snippet for the options of the directive that our image imports.
var optionsLines = regexp.MustCompile(`(?ms)^\(` + optionsSnippet + `\) \{[ \t\r]*\n(.*?)^\}`)

var (
	importLine  = regexp.MustCompile(`(?m)^[ \t]*import[ \t]+([^\s#]+).*$`)
	snippetLine = regexp.MustCompile(`(?m)^[ \t]*\(([^\s()]+)\)[ \t]*\{`)
)

// withoutFiles empties the lines that import anything but snippets. The import of
// the directive in our image becomes the directive.
func withoutFiles(text string) string {
	snippets := map[string]bool{}
	for _, match := range snippetLine.FindAllStringSubmatch(text, -1) {
		snippets[match[1]] = true
	}
	return importLine.ReplaceAllStringFunc(text, func(line string) string {
		switch match := importLine.FindStringSubmatch(line); {
		case snippets[match[1]]:
			return line
		case match[1] == imported:
			return plugin
		}
		return ""
	})
}

// String is the text.
func (c *Corefile) String() string { return strings.Join(c.lines, "\n") }

// Serves reports whether the server block for a zone has the plugin for it.
func (c *Corefile) Serves(zone string) bool { return c.directive(zone) != nil }

// Option returns the arguments of an option of the plugin for a zone, nil if it is
// not set.
func (c *Corefile) Option(zone, name string) []string {
	directive := c.directive(zone)
	if directive != nil && c.imports(directive) {
		directive = c.options
	}
	return option(directive, name)
}

// Set returns the cluster set for which the plugin serves a zone.
func (c *Corefile) Set(zone string) export.Set {
	return export.Set(strings.Join(c.Option(zone, "clusterset"), " "))
}

// imports reports whether a directive is the import of the one in our image.
func (c *Corefile) imports(directive []caddyfile.Token) bool {
	return strings.TrimSpace(c.lines[directive[0].Line-1]) == "import "+imported
}

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

// directive is the plugin for a zone in the server block for it, nil if there is
// none.
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

// Plugins with which a Corefile serves the zone of a set.
const (
	// ByMulticluster is the plugin of this project.
	ByMulticluster = plugin
	// ByKubernetes is the stock plugin with its option multicluster.
	ByKubernetes = "kubernetes"
	// ByForward is another server.
	ByForward = "forward"
)

// By returns the plugin with which the Corefile serves a zone, or an empty string
// if it shows none. A forward of the root zone in the server block of the root zone
// does not count, because it is for names outside of the cluster.
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

// Uses reports whether any server block has the plugin, or the option of the same name of the plugin kubernetes, for
// whichever zone.
func (c *Corefile) Uses() bool {
	return slices.ContainsFunc(c.blocks, func(block caddyfile.ServerBlock) bool {
		return len(block.Tokens[plugin]) > 0 || slices.ContainsFunc(directives(&block, ByKubernetes),
			func(directive []caddyfile.Token) bool { return option(directive, plugin) != nil })
	})
}

// directives splits the tokens of a plugin, which a block may have more than once.
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

// blockOf is the server block for a zone, nil if there is none, and the longest of
// its zones that contains the zone.
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

// below reports whether a zone equals another one, in normal form, or is in it.
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
