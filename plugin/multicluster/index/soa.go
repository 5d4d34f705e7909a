// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// Times of the SOA records, in seconds, as CoreDNS's kubernetes plugin has them.
const (
	soaRefresh = 7200
	soaRetry   = 1800
	soaExpire  = 86400
)

// makeSOA makes the SOA records of all zones.
func makeSOA(config *record.Config, serial uint32) [][]dns.RR {
	soa := make([][]dns.RR, len(config.Zones)+len(config.Reverse))
	for i, zone := range slices.Concat(config.Zones, config.Reverse) {
		server := config.Zones[0]
		if i < len(config.Zones) {
			server = zone
		}
		soa[i] = []dns.RR{&dns.SOA{
			Hdr:     dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: config.TTL},
			Ns:      NameServer(server),
			Mbox:    Join("hostmaster", server),
			Serial:  serial,
			Refresh: soaRefresh,
			Retry:   soaRetry,
			Expire:  soaExpire,
			Minttl:  config.TTL,
		}}
	}
	return soa
}

// NameServer is the name of the server of a zone.
func NameServer(zone string) string { return Join("ns.dns", zone) }

// Join puts labels before a zone.
func Join(labels, zone string) string {
	if zone == "." {
		return labels + "."
	}
	return labels + "." + zone
}
