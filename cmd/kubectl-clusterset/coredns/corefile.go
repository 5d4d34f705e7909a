// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coredns/caddy/caddyfile"
	"github.com/coredns/corefile-migration/migration/corefile"
)

// plugin is the name of the directive, and of the option of the stock plugin kubernetes.
const plugin = "multicluster"

// A Corefile is its server blocks, in which snippets are expanded. Imported files are ignored: they exist only in the
// pods of CoreDNS.
type Corefile struct {
	Servers []*corefile.Server
}

var importLine = regexp.MustCompile(`(?m)^[ \t]*import[ \t]+\S.*$`)

// ParseCorefile returns an error if CoreDNS could not parse the text.
func ParseCorefile(text string) (c *Corefile, err error) {
	if _, err := caddyfile.Parse("Corefile", strings.NewReader(importLine.ReplaceAllString(text, "")), nil); err != nil {
		return nil, fmt.Errorf("the Corefile does not parse: %w", err)
	}
	defer func() {
		if recover() != nil { // the library expects a name before each block
			c, err = nil, fmt.Errorf("the Corefile does not parse: a block has no name")
		}
	}()
	parsed, err := corefile.New(text)
	if err != nil {
		return nil, fmt.Errorf("the Corefile does not parse: %w", err)
	}
	c = &Corefile{}
	snippets := map[string][]*corefile.Plugin{}
	var keys []string // of a block whose zones span several lines
	for _, server := range parsed.Servers {
		server.DomPorts, server.Plugins = append(keys, server.DomPorts...), expanded(server.Plugins, snippets)
		keys = nil
		last := server.DomPorts[len(server.DomPorts)-1]
		switch name := server.DomPorts[0]; {
		case strings.HasPrefix(name, "(") && strings.HasSuffix(name, ")"):
			snippets[strings.Trim(name, "()")] = server.Plugins
		case strings.HasSuffix(last, ",") && len(server.Plugins) == 0:
			keys = server.DomPorts
		default:
			c.Servers = append(c.Servers, server)
		}
	}
	return c, nil
}

// expanded are plugins of a block in which the imports of snippets, also as options, are replaced by their content.
func expanded(plugins []*corefile.Plugin, snippets map[string][]*corefile.Plugin) (all []*corefile.Plugin) {
	for _, each := range plugins {
		if each.Name == "import" && len(each.Args) > 0 {
			all = append(all, snippets[each.Args[0]]...)
			continue
		}
		var options []*corefile.Option
		for _, option := range each.Options {
			if option.Name != "import" || len(option.Args) == 0 {
				options = append(options, option)
				continue
			}
			for _, line := range snippets[option.Args[0]] {
				options = append(options, &corefile.Option{Name: line.Name, Args: line.Args})
			}
		}
		all = append(all, &corefile.Plugin{Name: each.Name, Args: each.Args, Options: options})
	}
	return all
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

// By returns the plugin with which the Corefile serves a zone, or an empty string if it shows none. A forward of the
// root zone in the server block of the root zone does not count, because it is for names outside of the cluster.
func (c *Corefile) By(zone string) string {
	server, own := c.ServerOf(zone)
	switch {
	case server == nil:
		return ""
	case c.Serves(zone):
		return ByMulticluster
	}
	for _, each := range server.Plugins {
		switch {
		case each.Name == ByKubernetes && slices.ContainsFunc(option(each, plugin), equals(zone)):
			return ByKubernetes
		case each.Name == ByForward && len(each.Args) > 0 && below(zone, normal(each.Args[0])) &&
			(normal(each.Args[0]) != "." || own != "."):
			return ByForward
		}
	}
	return ""
}

// Serves reports whether the server block for a zone has the plugin multicluster for it.
func (c *Corefile) Serves(zone string) bool { return c.directive(zone) != nil }

// Option returns the arguments of an option of the plugin multicluster for a zone, nil if it is not set.
func (c *Corefile) Option(zone, name string) []string {
	if directive := c.directive(zone); directive != nil {
		return option(directive, name)
	}
	return nil
}

// Set returns the cluster set for which the plugin serves a zone.
func (c *Corefile) Set(zone string) string {
	return string(strings.Join(c.Option(zone, "clusterset"), " "))
}

// directive is the plugin multicluster for a zone, nil if there is none.
func (c *Corefile) directive(zone string) *corefile.Plugin {
	server, _ := c.ServerOf(zone)
	if server == nil {
		return nil
	}
	for _, each := range server.Plugins {
		zones := each.Args
		if len(zones) == 0 {
			zones = Zones(server)
		}
		if each.Name == plugin && (slices.ContainsFunc(zones, equals(zone)) || slices.ContainsFunc(zones, equals("."))) {
			return each
		}
	}
	return nil
}

func option(of *corefile.Plugin, name string) []string {
	for _, each := range of.Options {
		if each.Name == name {
			return append([]string{}, each.Args...)
		}
	}
	return nil
}

// ServerOf is the server block for a zone, nil if there is none, and the longest of its zones that contains the zone.
func (c *Corefile) ServerOf(zone string) (best *corefile.Server, of string) {
	for _, server := range c.Servers {
		for _, own := range Zones(server) {
			if below(zone, own) && len(own) > len(of) {
				best, of = server, own
			}
		}
	}
	return best, of
}

// Zones are those of a server block, in lower case and with a dot at the end.
func Zones(server *corefile.Server) []string {
	var zones []string
	for _, key := range server.DomPorts {
		key = strings.TrimSuffix(key, ",")
		if _, rest, scheme := strings.Cut(key, "://"); scheme {
			key = rest
		}
		if at := strings.LastIndex(key, ":"); at >= 0 {
			key = key[:at]
		}
		zones = append(zones, normal(key))
	}
	return zones
}

// below reports whether a zone equals another one, in normal form, or is in it.
func below(zone, other string) bool {
	return other == "." || normal(zone) == other || strings.HasSuffix(normal(zone), "."+other)
}

func equals(zone string) func(string) bool {
	return func(other string) bool { return normal(other) == normal(zone) }
}

// normal is a zone in lower case, with a dot at its end.
func normal(zone string) string { return strings.ToLower(strings.TrimSuffix(zone, ".")) + "." }

// name is a zone in messages.
func name(zone string) string { return strings.TrimSuffix(normal(zone), ".") }
