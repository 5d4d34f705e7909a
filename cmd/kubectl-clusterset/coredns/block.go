// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coredns/corefile-migration/migration/corefile"
)

// repeated are the plugins that the new server block has like the block that answered for the zone before.
var repeated = []string{"acl", "bind", "errors", "log", "prometheus"}

// The lines between which the server block of Enable is.
const (
	begin = "# BEGIN %s: added by kubectl clusterset coredns enable, removed by coredns disable"
	end   = "# END %s"
)

// block is the server block that forwards a zone to servers. It listens where the block of the Corefile does that
// answered for the zone.
func (c *Corefile) block(zone string, servers []string) string {
	key, lines := name(zone)+":53", []string{"    errors"}
	if before, of := c.ServerOf(zone); before != nil {
		like := before.DomPorts[slices.Index(Zones(before), of)]
		key, lines = zoneOfKey.ReplaceAllString(like, "${1}"+name(zone)+"${2}"), nil
		for _, each := range before.Plugins {
			if slices.Contains(repeated, each.Name) {
				lines = append(lines, "    "+each.ToString())
			}
		}
	}
	forward := &corefile.Plugin{Name: ByForward, Args: append([]string{"."}, servers...)}
	return key + " {\n" + strings.Join(append(lines, "    "+forward.ToString()), "\n") + "\n}\n"
}

// zoneOfKey is the zone in a key of a server block, such as dns://.:53.
var zoneOfKey = regexp.MustCompile(`^(\w+://)?[^:,]*(:[^,]*)?,?$`)

// with is a Corefile to which the server block was added. All other text stays as it is.
func with(text, zone string, servers []string) (string, error) {
	text = without(text, zone)
	before, err := ParseCorefile(text)
	if err != nil {
		return "", err
	}
	server, of := before.ServerOf(zone)
	switch by := before.By(zone); {
	case by != "":
		return "", fmt.Errorf("the Corefile already serves %s with the plugin %s: remove that first", name(zone), by)
	case server != nil && of == normal(zone):
		return "", fmt.Errorf("the Corefile already has a server block for %s: remove it first", name(zone))
	case !before.reloads():
		return "", errors.New("the Corefile has no plugin reload, so CoreDNS would not read the change: add it first")
	}
	added := fmt.Sprintf("\n"+begin+"\n%s"+end+"\n", name(zone), before.block(zone, servers), name(zone))
	after, err := ParseCorefile(text + added)
	if err != nil || after.By(zone) != ByForward {
		return "", errors.New("the Corefile takes no further server block: enclose each of its blocks in braces")
	}
	return text + added, nil
}

// without is the text of a Corefile before with, byte for byte.
func without(text, zone string) string {
	name := regexp.QuoteMeta(name(zone))
	return regexp.MustCompile(`(?ms)\n?^`+fmt.Sprintf(begin, name)+`$.*?^`+fmt.Sprintf(end, name)+`$\n?`).ReplaceAllString(text, "")
}

// reloads reports whether CoreDNS rereads the Corefile.
func (c *Corefile) reloads() bool {
	return slices.ContainsFunc(c.Servers, func(server *corefile.Server) bool {
		return slices.ContainsFunc(server.Plugins, func(each *corefile.Plugin) bool { return each.Name == "reload" })
	})
}
