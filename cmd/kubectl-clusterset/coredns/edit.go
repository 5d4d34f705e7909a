// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coredns/caddy/caddyfile"
)

// imported is a pattern for the file of our image that has the directive multicluster. CoreDNS skips an import whose
// pattern matches no file, so that a Corefile with this import is also readable for images without the file.
const imported = "/etc/clusterset-dns/*.conf"

// optionsSnippet is the name of a snippet of the Corefile. That file imports it for the options of the directive.
const optionsSnippet = plugin + "-options"

// A Way is how the zone is to be answered.
type Way struct {
	// Mode is one of ByMulticluster, ByKubernetes and ByForward.
	Mode string
	// Servers are those of ByForward.
	Servers []string
	// ClusterID is that of the local cluster, for ByMulticluster; it may be empty.
	ClusterID string
}

// repeated are the directives that a new server block for the zone takes over from the block that answered before.
var repeated = []string{"acl", "bind", "errors", "log", "loadbalance", "prometheus", "ready"}

// Enable returns the text in which the zone is answered in a way. A Corefile that has its mode already is returned
// unchanged. Every mode but ByKubernetes leaves a text that every image of CoreDNS reads.
func (c *Corefile) Enable(zone string, way Way) (string, error) {
	switch by := c.By(zone); {
	case by == way.Mode:
		return c.redirect(zone, way.Servers), nil
	case by != "":
		return "", fmt.Errorf("the Corefile already serves %s with the plugin %s: remove that first, with `kubectl clusterset coredns disable` if `enable` added it", name(zone), by)
	}
	block, of := c.blockOf(zone)
	if block == nil {
		return "", fmt.Errorf("the Corefile has no server block for %s: add one, or one for the root zone", name(zone))
	}
	switch way.Mode {
	case ByKubernetes:
		return c.enableOption(block, zone)
	case ByForward:
		return c.add(block, of, zone, ByForward+" . "+strings.Join(way.Servers, " "))
	}
	text, err := c.add(block, of, zone, "import "+imported)
	if err != nil || optionsLines.MatchString(text) {
		return text, err
	}
	// A snippet must come before it is imported.
	snippet := "(" + optionsSnippet + ") {\n"
	if way.ClusterID != "" {
		snippet += "    cluster " + way.ClusterID + "\n"
	}
	snippet += "}\n"
	if strings.HasSuffix(c.lines[0], "\r") {
		snippet = strings.ReplaceAll(snippet, "\n", "\r\n")
	}
	return snippet + text, nil
}

// add adds a directive for the zone, to its server block or in a new one.
func (c *Corefile) add(block *caddyfile.ServerBlock, of, zone, directive string) (string, error) {
	if of == normal(zone) {
		return c.insert(block, directive)
	}
	return c.appendBlock(block, of, zone, directive), nil
}

var forwardTo = regexp.MustCompile(`^(\s*forward\s+\S+)\s[^{#\r]*`)

// redirect is the text in which the server block below the marker forwards to these servers, if there are any.
func (c *Corefile) redirect(zone string, servers []string) string {
	text, marked := c.withoutBlock(zone)
	block, _ := c.blockOf(zone)
	if !marked || text == c.String() || len(servers) == 0 {
		return c.String()
	}
	lines := slices.Clone(c.lines)
	for _, directive := range directives(block, ByForward) {
		at := directive[0].Line - 1
		if words := arguments(directive); len(words) > 0 && !slices.Equal(words[1:], servers) {
			rest := lines[at][len(forwardTo.FindString(lines[at])):]
			if rest != "" && rest != "\r" {
				rest = " " + rest
			}
			lines[at] = forwardTo.FindStringSubmatch(lines[at])[1] + " " + strings.Join(servers, " ") + rest
		}
	}
	return strings.Join(lines, "\n")
}

// insert adds a directive before the first one of a server block.
func (c *Corefile) insert(block *caddyfile.ServerBlock, directive string) (string, error) {
	at := 0
	for _, tokens := range block.Tokens {
		if len(tokens) > 0 && (at == 0 || tokens[0].Line < at) {
			at = tokens[0].Line
		}
	}
	if at == 0 || at > len(c.lines) {
		return "", fmt.Errorf("the server block %s of the Corefile is empty: add the line `%s` to it",
			strings.Join(block.Keys, " "), directive)
	}
	return strings.Join(slices.Insert(slices.Clone(c.lines), at-1, c.like(at, directive)), "\n"), nil
}

// like is a line with the indent and the end of the given one, counted from 1.
func (c *Corefile) like(line int, text string) string {
	of := c.lines[line-1]
	return of[:len(of)-len(strings.TrimLeft(of, " \t"))] + text + of[len(strings.TrimRight(of, "\r")):]
}

// marker is the comment above a server block that Enable added.
func marker(zone string) string {
	return "# " + name(zone) + " was added by kubectl clusterset coredns enable; coredns disable removes it."
}

// appendBlock adds a server block for the zone. It listens where the given block does, which answered for a zone above.
func (c *Corefile) appendBlock(block *caddyfile.ServerBlock, of, zone, directive string) string {
	end := ""
	if strings.HasSuffix(c.lines[0], "\r") {
		end = "\r"
	}
	added := []string{marker(zone) + end, keyFor(block, of, zone) + " {" + end}
	for _, name := range repeated {
		for _, tokens := range directives(block, name) {
			from, to := tokens[0].Line, tokens[len(tokens)-1].Line
			if to <= len(c.lines) {
				added = append(added, c.lines[from-1:to]...)
			}
		}
	}
	added = append(added, "    "+directive+end, "}"+end)
	kept := slices.Clone(c.lines)
	if last := len(kept) - 1; strings.TrimSpace(kept[last]) == "" {
		kept = kept[:last]
	}
	return strings.Join(append(append(kept, added...), ""), "\n")
}

// keyFor is the key of a server block for the zone with the scheme and the port of the one that answers for a zone above.
func keyFor(block *caddyfile.ServerBlock, of, zone string) string {
	zones := keysOf(*block)
	at := slices.IndexFunc(zones, func(key string) bool { return normal(key) == of })
	scheme, port := "", strings.TrimSuffix(block.Keys[at], ",")
	if before, rest, found := strings.Cut(port, "://"); found {
		scheme, port = before+"://", rest
	}
	return scheme + name(zone) + port[len(zones[at]):]
}

var firstZone = regexp.MustCompile(`^(\s*kubernetes\s+\S+)`)

// enableOption adds the zone and the option multicluster to the directive kubernetes.
func (c *Corefile) enableOption(block *caddyfile.ServerBlock, zone string) (string, error) {
	found := directives(block, ByKubernetes)
	if len(found) == 0 || len(arguments(found[0])) == 0 || !firstZone.MatchString(c.lines[found[0][0].Line-1]) {
		return "", fmt.Errorf("no directive kubernetes with zones is in the server block %s of the Corefile: add it, or forward the zone",
			strings.Join(block.Keys, " "))
	}
	directive, lines := found[0], slices.Clone(c.lines)
	at := directive[0].Line
	lines[at-1] = firstZone.ReplaceAllString(lines[at-1], "$1 "+name(zone))
	option := c.like(at, "    ")
	option = strings.TrimRight(option, "\r") + plugin + " " + name(zone) + option[len(strings.TrimRight(option, "\r")):]
	if len(directive) > 1 && slices.ContainsFunc(directive, func(t caddyfile.Token) bool { return t.Text == "{" }) {
		lines = slices.Insert(lines, at, option)
	} else {
		text := strings.TrimRight(lines[at-1], " \t\r")
		if comment := strings.Index(text, "#"); comment >= 0 {
			text = strings.TrimRight(text[:comment], " \t")
		}
		lines[at-1] = text + " {" + lines[at-1][len(strings.TrimRight(lines[at-1], "\r")):]
		lines = slices.Insert(lines, at, option, c.like(at, "}"))
	}
	edited, err := ParseCorefile(strings.Join(lines, "\n"))
	if err != nil {
		return "", err
	}
	return edited.uncached(zone), nil
}

// uncached is the text in which the plugin cache does not keep answers for the zone beyond their TTL: if its directive
// has serve_stale, a minimum TTL or zones that are not cached, the zone is one of the latter.
func (c *Corefile) uncached(zone string) string {
	block, _ := c.blockOf(zone)
	lines := slices.Clone(c.lines)
	for _, directive := range slices.Backward(directives(block, "cache")) {
		beyond := option(directive, "serve_stale") != nil || option(directive, "disable") != nil ||
			len(option(directive, "success")) > 2 || len(option(directive, "denial")) > 2
		if !beyond {
			continue
		}
		for _, kind := range []string{"denial", "success"} {
			at := slices.IndexFunc(directive, func(t caddyfile.Token) bool { return t.Text == "disable" })
			line := 0
			for i := at; i >= 0 && i+1 < len(directive); i++ {
				if directive[i].Text == "disable" && directive[i+1].Text == kind {
					line = directive[i].Line
				}
			}
			if line > 0 {
				if zones := strings.Fields(lines[line-1]); len(zones) > 2 { // without zones, it is for all of them
					lines[line-1] = strings.TrimRight(lines[line-1], " \t\r") + " " + name(zone) +
						lines[line-1][len(strings.TrimRight(lines[line-1], "\r")):]
				}
				continue
			}
			first := directive[0].Line
			text := c.like(first, "    disable "+kind+" "+name(zone))
			lines = slices.Insert(lines, first, text)
		}
	}
	return strings.Join(lines, "\n")
}

// Disable returns the text without what Enable added for the zone, whatever was added to its server block since, and
// whether there was anything. What others wrote stays.
func (c *Corefile) Disable(zone string) (string, bool) {
	text, removed := c.withoutBlock(zone)
	if !removed {
		switch directive := c.directive(zone); {
		case directive != nil && c.imports(directive):
			at := directive[0].Line - 1
			text, removed = strings.Join(slices.Delete(slices.Clone(c.lines), at, at+1), "\n"), true
		case c.By(zone) == ByKubernetes:
			return c.disableOption(zone)
		}
	}
	if at := optionsLines.FindStringIndex(text); at != nil && removed && !strings.Contains(text, "import "+imported) {
		text = text[:at[0]] + strings.TrimPrefix(strings.TrimPrefix(text[at[1]:], "\r"), "\n")
	}
	return text, removed
}

// withoutBlock is the text without the server block below the marker, and whether there is one.
func (c *Corefile) withoutBlock(zone string) (string, bool) {
	from := slices.IndexFunc(c.lines, func(line string) bool { return strings.TrimSpace(line) == marker(zone) })
	if from < 0 {
		return c.String(), false
	}
	length := slices.IndexFunc(c.lines[from:], func(line string) bool { return strings.TrimRight(line, " \t\r") == "}" })
	if length < 0 {
		return c.String(), false
	}
	return strings.Join(slices.Delete(slices.Clone(c.lines), from, from+length+1), "\n"), true
}

// disableOption reverts enableOption.
func (c *Corefile) disableOption(zone string) (string, bool) {
	block, _ := c.blockOf(zone)
	drop := map[int]bool{}
	lines := slices.Clone(c.lines)
	without := func(line, least int) {
		words := strings.Fields(lines[line-1])
		if !slices.Contains(words, name(zone)) {
			return
		}
		if len(words) == least {
			drop[line] = true
			return
		}
		lines[line-1] = strings.Replace(lines[line-1], " "+name(zone), "", 1)
	}
	reverted := false
	for _, directive := range directives(block, ByKubernetes) {
		words := option(directive, plugin)
		if len(words) != 1 || normal(words[0]) != normal(zone) {
			continue
		}
		for _, token := range directive[1:] {
			if token.Text == plugin {
				drop[token.Line], reverted = true, true
			}
		}
		without(directive[0].Line, 2)
	}
	for _, directive := range directives(block, "cache") {
		for _, token := range directive {
			if token.Text == "disable" {
				without(token.Line, 3)
			}
		}
	}
	if !reverted {
		return c.String(), false
	}
	var kept []string
	for i, line := range lines {
		if !drop[i+1] {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n"), true
}
