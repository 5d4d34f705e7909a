// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

var dnsConfig = &index.Config{Zones: []string{"clusterset.local."}, TTL: 5}

// startDNS starts the watch and the index of the plugin.
func (c *Cluster) startDNS() {
	source, stop, err := watch.New(c.platform.Admin, watch.Options{}, unobserved{})
	c.set.must(err)
	c.index = source.View(dnsConfig)
	c.stopIndex = func() {
		source.Release(c.index)
		stop()
	}
}

func (c *Cluster) stopDNS() {
	if c.stopIndex != nil {
		c.stopIndex()
		c.stopIndex = nil
	}
}

// answer is what DNS answers to a question for A records: the addresses,
// sorted, or the rcode. A name without addresses is NODATA.
func (c *Cluster) answer(service string) string {
	snapshot := c.index.Snapshot()
	if snapshot == nil {
		return "SERVFAIL"
	}
	query := service + "." + c.set.namespace + ".svc"
	question := index.Question{
		Name: query + ".clusterset.local.", Type: dns.TypeA,
		Client: index.Client{Size: dns.MaxMsgSize}, Request: name.Parse(query),
	}
	answer := snapshot.Lookup(&question)
	if answer.Result == index.NotExist {
		return "NXDOMAIN"
	}
	var addresses []string
	for _, record := range answer.Answer {
		if a, ok := record.(*dns.A); ok {
			addresses = append(addresses, a.A.String())
		}
	}
	if len(addresses) == 0 {
		return "NODATA"
	}
	slices.Sort(addresses)
	return strings.Join(addresses, " ")
}

// unobserved counts nothing.
type unobserved struct{}

func (unobserved) Objects(watch.Resource, int)               {}
func (unobserved) Totals(_, _ index.Totals)                  {}
func (unobserved) Asked(watch.Resource, string, error)       {}
func (unobserved) Programmed(bool, time.Duration)            {}
func (unobserved) Undecodable(watch.Resource, string, error) {}
