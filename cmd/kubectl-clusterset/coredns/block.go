// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coredns/caddy/caddyfile"
)

// repeated are the plugins that the new server block has like the block that answered for the zone before.
var repeated = []string{"acl", "bind", "errors", "log", "prometheus"}

// The lines between which the server block of Enable is.
const (
	begin = "# BEGIN %s: added by kubectl clusterset coredns enable, removed by coredns disable"
	end   = "# END %s"
)

// block is the server block that forwards a zone to servers. It listens where the block of the Corefile does that
// answered for the zone, and has the same lines of the repeated plugins.
func (c *Corefile) block(zone string, servers []string) string {
	key, lines := name(zone)+":53", []string{"    errors"}
	if before, like, of := c.blockOf(zone); of != "" {
		key, lines = show.Replace(keyParts.ReplaceAllString(like, "${1}"+name(zone)+"${3}")), nil
		text := strings.Split(c.text, "\n")
		for _, plugin := range repeated {
			last := 0
			for _, token := range before.Tokens[plugin] {
				if token.Line != last {
					last = token.Line
					lines = append(lines, strings.TrimRight(text[last-1], " \t\r"))
				}
			}
		}
	}
	lines = append(lines, "    forward . "+strings.Join(servers, " "))
	return key + " {\n" + strings.Join(lines, "\n") + "\n}\n"
}

// with is a Corefile to which the server block was added. All other text stays as it is.
func with(text, zone string, servers []string) (string, error) {
	text = without(text, zone)
	before, err := ParseCorefile(text)
	if err != nil {
		return "", err
	}
	_, _, of := before.blockOf(zone)
	switch by := before.By(zone); {
	case by != "":
		return "", fmt.Errorf("the Corefile already serves %s with the plugin %s: remove that first", name(zone), by)
	case of == normal(zone):
		return "", fmt.Errorf("the Corefile already has a server block for %s: remove it first", name(zone))
	case !slices.ContainsFunc(before.blocks, func(each caddyfile.ServerBlock) bool { return each.Tokens["reload"] != nil }):
		return "", errors.New("the Corefile has no plugin reload, so CoreDNS would not read the change: add it first")
	}
	added := fmt.Sprintf("\n"+begin+"\n%s"+end+"\n", name(zone), before.block(zone, servers), name(zone))
	if after, err := ParseCorefile(text + added); err != nil || after.By(zone) != ByForward {
		return "", errors.New("the Corefile takes no further server block: enclose each of its blocks in braces, on lines of their own")
	}
	return text + added, nil
}

// without is the text of a Corefile before with, byte for byte.
func without(text, zone string) string {
	name := regexp.QuoteMeta(name(zone))
	return regexp.MustCompile(`(?ms)\n?^`+fmt.Sprintf(begin, name)+`$.*?^`+fmt.Sprintf(end, name)+`$\n?`).ReplaceAllString(text, "")
}
