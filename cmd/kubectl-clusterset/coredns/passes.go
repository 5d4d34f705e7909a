// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"slices"

	"github.com/coredns/corefile-migration/migration/corefile"
)

// Passes reports whether the Corefile of a cache sends queries for a zone to the cluster's DNS: the zone has a server
// block, or that of the root zone forwards to the same servers as the first block of another zone.
func (c *Corefile) Passes(zone string) bool {
	server, of := c.ServerOf(zone)
	if server == nil || of != "." {
		return server != nil
	}
	for _, own := range c.Servers {
		if to := upstreams(own); !slices.Contains(Zones(own), ".") && len(to) > 0 {
			return slices.Equal(upstreams(server), to)
		}
	}
	return false
}

// upstreams are the servers to which a server block forwards everything.
func upstreams(server *corefile.Server) []string {
	for _, each := range server.Plugins {
		if each.Name == ByForward && len(each.Args) > 1 && each.Args[0] == "." {
			return each.Args[1:]
		}
	}
	return nil
}
