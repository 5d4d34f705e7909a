// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coredns/caddy/caddyfile"
	"github.com/miekg/dns"
)

// Plugins with which a Corefile serves the zone of a set.
const (
	// ByMulticluster is the plugin of this project.
	ByMulticluster = "multicluster"
	// ByForward means that another server serves the zone.
	ByForward = "forward"
)

// A Corefile has its server blocks, in which snippets are expanded. Imported files are ignored: they exist only in the pods of
// CoreDNS.
type Corefile struct{ blocks []caddyfile.ServerBlock }

var (
	snippetLine = regexp.MustCompile(`(?m)^[ \t]*\((\S+)\)\s+\{`)
	importLine  = regexp.MustCompile(`(?m)^[ \t]*import[ \t]+\S.*$`)
	// importAfterBrace is an import that importLine does not find.
	importAfterBrace = regexp.MustCompile(`(?m)\{[ \t]+import[ \t]`)
	// hide keeps the parser from expanding environment variables: this process has others. show reverts it.
	hide, show = strings.NewReplacer("{$", "${", "{%", "%{"), strings.NewReplacer("${", "{$", "%{", "{%")
	// keyParts are the scheme, the zone and the port of a key of a server block, such as dns://.:53. No zone is below that of a key
	// with another scheme, such as tls://.:853.
	keyParts = regexp.MustCompile(`^(dns://)?([^:]*)(:.*)?$`)
)

// ErrCorefile is the error of a Corefile that CoreDNS could not parse.
var ErrCorefile = errors.New("the Corefile does not parse")

// ParseCorefile returns an error that wraps ErrCorefile if CoreDNS could not parse the text.
func ParseCorefile(text string) (*Corefile, error) {
	snippets := map[string]bool{}
	for _, found := range snippetLine.FindAllStringSubmatch(text, -1) {
		snippets[found[1]] = true
	}
	parsed := importLine.ReplaceAllStringFunc(text, func(line string) string {
		if snippets[strings.Fields(line)[1]] {
			return line
		}
		return ""
	})
	if importAfterBrace.MatchString(parsed) { // which would read a file of this machine
		return nil, fmt.Errorf("%w: put each import on a line of its own", ErrCorefile)
	}
	blocks, err := caddyfile.Parse("Corefile", strings.NewReader(hide.Replace(parsed)), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorefile, err)
	}
	return &Corefile{blocks}, nil
}

// By returns the plugin with which the Corefile serves a zone, or an empty string if it is nil or shows none, and the arguments of
// its option cluster, nil if it is not set. A forward of the root zone in the server block of the root zone does not count, because
// it is for names outside of the cluster.
func (c *Corefile) By(zone string) (plugin string, cluster []string) {
	if c == nil {
		return "", nil
	}
	block, _, of := c.blockOf(zone)
	for _, each := range directives(block, ByMulticluster) {
		zones := each[0]
		if len(zones) == 0 {
			zones = []string{of}
		}
		if has(zones, zone) || has(zones, ".") {
			return ByMulticluster, each.option("cluster")
		}
	}
	for _, each := range directives(block, ByForward) {
		if args := each[0]; len(args) > 0 && below(zone, args[0]) && (normal(args[0]) != "." || of != ".") {
			return ByForward, nil
		}
	}
	return "", nil
}

// Passes reports whether NodeLocal DNSCache with this Corefile sends queries for a zone to the cluster's DNS: the zone has a
// server block, or the block of the root zone forwards to the same servers as the block of the cluster's own zone, which is the
// first forwarding block of another zone than the root.
func (c *Corefile) Passes(zone string) bool {
	block, _, of := c.blockOf(zone)
	isRoot := func(key string) bool { return zoneOf(key) == "." }
	own := slices.IndexFunc(c.blocks, func(block caddyfile.ServerBlock) bool {
		return upstreams(block) != nil && !slices.ContainsFunc(block.Keys, isRoot)
	})
	return of != "" && of != "." || own >= 0 && slices.Equal(upstreams(block), upstreams(c.blocks[own]))
}

// upstreams returns the servers to which a server block forwards everything.
func upstreams(block caddyfile.ServerBlock) []string {
	for _, each := range directives(block, ByForward) {
		if args := each[0]; len(args) > 1 && args[0] == "." {
			return args[1:]
		}
	}
	return nil
}

// A directive is one use of a plugin: its arguments, and then its options, each with its arguments.
type directive [][]string

// option returns the arguments of an option, nil if it is not set.
func (d directive) option(name string) []string {
	for _, each := range d[1:] {
		if each[0] == name {
			return each[1:]
		}
	}
	return nil
}

// directives returns the uses of a plugin in a server block.
func directives(block caddyfile.ServerBlock, plugin string) (all []directive) {
	for tokens := caddyfile.NewDispenserTokens("", block.Tokens[plugin]); tokens.Next(); {
		one := directive{tokens.RemainingArgs()}
		for tokens.NextBlock() {
			one = append(one, append([]string{tokens.Val()}, tokens.RemainingArgs()...))
		}
		all = append(all, one)
	}
	return all
}

// blockOf returns the server block for a zone, with the matching key and its zone, all empty if there is none.
func (c *Corefile) blockOf(zone string) (best caddyfile.ServerBlock, key, of string) {
	for _, block := range c.blocks {
		for _, each := range block.Keys {
			if own := zoneOf(each); below(zone, own) && len(own) > len(of) {
				best, key, of = block, each, own
			}
		}
	}
	return best, key, of
}

func zoneOf(key string) string { return normal(keyParts.ReplaceAllString(key, "$2")) }

func has(zones []string, zone string) bool {
	return slices.ContainsFunc(zones, func(each string) bool { return normal(each) == normal(zone) })
}

// below reports whether a zone equals another one, or is in it.
func below(zone, other string) bool { return dns.IsSubDomain(normal(other), normal(zone)) }

// normal is a zone in lower case, with a dot at its end.
func normal(zone string) string { return dns.CanonicalName(zone) }

// name is a zone in messages.
func name(zone string) string { return strings.TrimSuffix(normal(zone), ".") }

// The lines that enclose the server block of Enable.
const (
	begin = "# BEGIN %s: added by kubectl clusterset coredns enable, removed by coredns disable"
	end   = "# END %s"
)

// block returns a server block that forwards a zone to servers. It listens at the port of the block of the Corefile that
// answered for the zone. It forwards over TCP: the plugin reopens a connection that a terminating pod closed, but its UDP
// sockets would stay connected to that pod.
func (c *Corefile) block(zone string, servers []string) string {
	key := name(zone) + ":53"
	if _, like, of := c.blockOf(zone); of != "" {
		key = show.Replace(keyParts.ReplaceAllString(like, "${1}"+name(zone)+"${3}"))
	}
	return key + " {\n    errors\n    forward . " + strings.Join(servers, " ") + " {\n        force_tcp\n    }\n}\n"
}

// with returns a Corefile to which the server block was added. All other text stays as it is.
func with(text, zone string, servers []string) (string, error) {
	text = without(text, zone)
	before, err := ParseCorefile(text)
	if err != nil {
		return "", err
	}
	block, _, of := before.blockOf(zone)
	switch by, _ := before.By(zone); {
	case by != "":
		return "", fmt.Errorf("the Corefile already serves %s with the plugin %s: remove that first", name(zone), by)
	case of == normal(zone):
		return "", fmt.Errorf("the Corefile already has a server block for %s: remove it first", name(zone))
	case block.Tokens["acl"] != nil || block.Tokens["bind"] != nil:
		return "", fmt.Errorf("queries for %s are answered by a server block with the plugin acl or bind: add a block with the same "+
			"lines of these by hand", name(zone))
	case !slices.ContainsFunc(before.blocks, func(each caddyfile.ServerBlock) bool { return each.Tokens["reload"] != nil }):
		return "", errors.New("the Corefile has no plugin reload, so CoreDNS would not read the change: add it first")
	}
	added := fmt.Sprintf("\n"+begin+"\n%s"+end+"\n", name(zone), before.block(zone, servers), name(zone))
	after, err := ParseCorefile(text + added)
	if by, _ := after.By(zone); err != nil || by != ByForward {
		return "", errors.New("the Corefile takes no further server block: enclose each of its blocks in braces, on lines of their own")
	}
	return text + added, nil
}

// without returns the text of a Corefile before with, byte for byte.
func without(text, zone string) string {
	name := regexp.QuoteMeta(name(zone))
	return regexp.MustCompile(`(?ms)\n?^`+fmt.Sprintf(begin, name)+`$.*?^`+fmt.Sprintf(end, name)+`$\n?`).ReplaceAllString(text, "")
}
