// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coredns/caddy/caddyfile"
)

// Passes tells whether the Corefile of a cache in front of the cluster's DNS,
// such as NodeLocal DNSCache, sends queries for a zone there: the zone has a
// server block, or the one of the root zone forwards to the same servers as
// another one does.
func (c *Corefile) Passes(zone string) bool {
	block, own := c.blockOf(zone)
	if block == nil || own != "." {
		return block != nil
	}
	to := upstreams(block)
	return len(to) > 0 && slices.ContainsFunc(c.blocks, func(other caddyfile.ServerBlock) bool {
		return !slices.ContainsFunc(keysOf(other), isRoot) && slices.Equal(upstreams(&other), to)
	})
}

// Passing returns the server block that makes such a Corefile pass on a zone.
// Its addresses are those of the server block of the cluster's own zone.
func (c *Corefile) Passing(zone string) string {
	bind, to := "", "<address of the cluster's DNS>"
	for i := range c.blocks {
		block := &c.blocks[i]
		if slices.ContainsFunc(keysOf(*block), isRoot) || len(upstreams(block)) == 0 {
			continue
		}
		to = strings.Join(upstreams(block), " ")
		for _, directive := range directives(block, "bind") {
			bind = "\n    bind " + strings.Join(arguments(directive), " ")
		}
		break
	}
	return fmt.Sprintf(`%s:53 {
    errors
    cache {
        success 9984 5
        denial 9984 1
    }
    reload%s
    forward . %s {
        force_tcp
    }
}`, strings.TrimSuffix(zone, "."), bind, to)
}

func isRoot(zone string) bool { return normal(zone) == "." }

// upstreams are the servers to which a block forwards all that it answers for.
func upstreams(block *caddyfile.ServerBlock) []string {
	for _, directive := range directives(block, ByForward) {
		if words := arguments(directive); len(words) > 1 && isRoot(words[0]) {
			return words[1:]
		}
	}
	return nil
}
