// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Walk yields the records of each service in the zone with that number, sorted by the services' keys, until yield
// returns false. It yields what queries answer, whatever limits they are under. The records may be shared and must not
// be changed.
func (s *Snapshot) Walk(zone int, yield func([]dns.RR) bool) {
	all := make([]*Service, 0, s.services.len)
	for _, service := range s.services.all {
		all = append(all, service)
	}
	slices.SortFunc(all, func(a, b *Service) int { return strings.Compare(a.Key(), b.Key()) })
	for _, service := range all {
		if records := service.in(zone).records(s.config, zone); len(records) > 0 && !yield(records) {
			return
		}
	}
}

// records are all records of the service.
func (s *Service) records(config *Config, zone int) []dns.RR {
	if !s.exists {
		return nil
	}
	if !s.imported.Headless {
		return s.virtualRecords(zone)
	}
	w := walker{service: s, owner: s.imported.Key + serviceSuffix(config.Zones[zone]), ttl: config.TTL}
	w.addresses()
	w.services()
	w.hosts()
	return w.records
}

func (s *Service) virtualRecords(zone int) []dns.RR {
	if s.virtual == nil {
		return nil
	}
	v := &s.virtual[zone]
	records := slices.Concat(v.extra, v.srv)
	for _, port := range v.ports {
		records = append(records, port.srv...)
	}
	return records
}

// walker collects the records of a headless service from its runs.
type walker struct {
	service *Service
	owner   string
	ttl     uint32
	records []dns.RR
}

// addresses adds those of the service name.
func (w *walker) addresses() {
	for i := range w.service.runs {
		r := &w.service.runs[i]
		for j := 0; r.inService && j < r.len(); j++ {
			w.records = append(w.records, addressRecord(w.owner, w.ttl, r.addr(j)))
		}
	}
}

// services adds the SRV records: at the service name one for each target and number, and those of named ports.
func (w *walker) services() {
	for i := range w.service.runs {
		r := &w.service.runs[i]
		if r.ports == nil {
			continue
		}
		for j := range r.len() {
			host := w.host(r, j)
			for _, number := range r.ports.distinct {
				w.records = append(w.records, serviceRecord(w.owner, w.ttl, host, number))
			}
		}
		for _, port := range r.ports.ports {
			if port.Name == "" {
				continue
			}
			owner := "_" + port.Name + "._" + port.Protocol.String() + "." + w.owner
			for j := range r.len() {
				w.records = append(w.records, serviceRecord(owner, w.ttl, w.host(r, j), port.Number))
			}
		}
	}
}

// hosts adds the addresses of the host names.
func (w *walker) hosts() {
	for i := range w.service.runs {
		r := &w.service.runs[i]
		for j := 0; r.inHost && j < r.len(); j++ {
			w.records = append(w.records, addressRecord(w.host(r, j), w.ttl, r.addr(j)))
		}
	}
}

// host is the name of the jth endpoint.
func (w *walker) host(r *run, j int) string {
	return string(r.appendHost(nil, j)) + "." + r.cluster + "." + w.owner
}
