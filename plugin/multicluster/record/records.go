// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"

	"github.com/miekg/dns"
)

// Records are all records of the service in the zone with that number: what queries answer, whatever limits they are
// under. They may be shared and must not be changed.
func (s *Service) Records(config *Config, zone int) []dns.RR {
	switch {
	case !s.Exists:
		return nil
	case s.Headless:
		w := walker{service: s, owner: s.Import.Key + Suffix(config.Zones[zone]), ttl: config.TTL}
		w.addresses()
		w.services()
		w.hosts()
		return w.records
	case s.ClusterSetIP == nil:
		return nil
	}
	c := &s.ClusterSetIP[zone]
	records := slices.Concat(c.Extra, c.SRV)
	for _, port := range c.ports {
		records = append(records, port.srv...)
	}
	return records
}

// walker collects the records of a headless service.
type walker struct {
	service *Service
	owner   string
	ttl     uint32
	records []dns.RR
}

// addresses adds those of the service name.
func (w *walker) addresses() {
	for i := range w.service.Blocks {
		b := &w.service.Blocks[i]
		for j := 0; b.InService && j < b.Len(); j++ {
			w.records = append(w.records, addressRecord(w.owner, w.ttl, b.Addr(j)))
		}
	}
}

// services adds the SRV records: at the service name one for each target and number, and those of named ports.
func (w *walker) services() {
	for i := range w.service.Blocks {
		b := &w.service.Blocks[i]
		if b.Ports == nil {
			continue
		}
		for j := range b.Len() {
			host := w.host(b, j)
			for _, number := range b.Ports.distinct {
				w.records = append(w.records, b.srv(w.owner, w.ttl, host, number))
			}
		}
		for _, port := range b.Ports.ports {
			if port.Name == "" {
				continue
			}
			owner := "_" + port.Name + "._" + port.Protocol.String() + "." + w.owner
			for j := range b.Len() {
				w.records = append(w.records, b.srv(owner, w.ttl, w.host(b, j), port.Number))
			}
		}
	}
}

// srv is an SRV record of an endpoint of the block.
func (c *Class) srv(owner string, ttl uint32, target string, port uint16) dns.RR {
	made := &dns.SRV{Priority: uint16(c.Priority)}
	SetSRV(made, owner, ttl, target, port)
	made.Weight = c.Weight
	return made
}

// hosts adds the addresses of the host names.
func (w *walker) hosts() {
	for i := range w.service.Blocks {
		b := &w.service.Blocks[i]
		for j := 0; b.InHost && j < b.Len(); j++ {
			w.records = append(w.records, addressRecord(w.host(b, j), w.ttl, b.Addr(j)))
		}
	}
}

// host is the name of the jth endpoint.
func (w *walker) host(b *Block, j int) string {
	return string(b.AppendHost(nil, j)) + "." + b.Cluster + "." + w.owner
}
