// SPDX-License-Identifier: Apache-2.0

// Package answers runs the plugin's watch and index without a DNS server around them, and asks for names.
package answers

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

// A DNS knows the names of one cluster.
type DNS struct {
	source *watch.Source
	states *states
	stop   func()
}

// Start returns a DNS that reads the cluster of a config. The caller stops it.
func Start(config *rest.Config) (*DNS, error) {
	kept := &states{of: make(map[watch.Resource]State)}
	source, stop, err := watch.New(config, watch.Options{}, &record.Config{Zones: []string{"clusterset.local."}, TTL: 5}, kept)
	if err != nil {
		return nil, err
	}
	return &DNS{source, kept, stop}, nil
}

// Stop ends it.
func (d *DNS) Stop() { d.stop() }

// State is that of a watched resource.
type State struct {
	// Synced is when the API server last confirmed the state.
	Synced time.Time
	// Healthy reports whether the last list or watch began without an error.
	Healthy bool
}

// states is an observer that keeps the states.
type states struct {
	mu sync.Mutex
	of map[watch.Resource]State
}

// Watched implements watch.Observer, as the others do.
func (s *states) Watched(resource watch.Resource, _ int) {
	s.change(resource, func(*State) {})
}

func (s *states) Confirmed(resource watch.Resource, at time.Time) {
	s.change(resource, func(state *State) { state.Synced = at })
}

func (s *states) Asked(resource watch.Resource, _ string, err error) {
	s.change(resource, func(state *State) { state.Healthy = err == nil })
}

func (*states) Objects(watch.Resource, int)               {}
func (*states) Totals(_, _ record.Totals)                 {}
func (*states) Programmed(bool, time.Duration)            {}
func (*states) Undecodable(watch.Resource, string, error) {}

func (s *states) change(resource watch.Resource, by func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.of[resource]
	by(&state)
	s.of[resource] = state
}

// States says how each watch is.
func (d *DNS) States() map[watch.Resource]State {
	d.states.mu.Lock()
	defer d.states.mu.Unlock()
	return maps.Clone(d.states.of)
}

// Ask returns the response code to a question for the A records of a service,
// and the addresses of the answer in no order.
func (d *DNS) Ask(service, namespace string) (rcode int, addresses []netip.Addr) {
	rcode, records := d.ask(service, namespace, dns.TypeA)
	for _, record := range records {
		if a, ok := record.(*dns.A); ok {
			if address, ok := netip.AddrFromSlice(a.A.To4()); ok {
				addresses = append(addresses, address)
			}
		}
	}
	return rcode, addresses
}

func (d *DNS) ask(service, namespace string, qtype uint16) (rcode int, records []dns.RR) {
	if d.source.Index().State() == nil {
		return dns.RcodeServerFailure, nil
	}
	query := service + "." + namespace + ".svc"
	found := d.source.Index().Lookup(&record.Question{
		Name: query + ".clusterset.local.", Type: qtype,
		Request: record.Parse(query),
	}, func() record.Client { return record.Client{Size: dns.MaxMsgSize} })
	if found.Result == record.NotExist {
		return dns.RcodeNameError, nil
	}
	return dns.RcodeSuccess, found.Answer
}

// SRV returns the SRV records of a service as text, sorted: for each the priority, the weight, and the host and cluster
// of the target.
func (d *DNS) SRV(service, namespace string) string {
	rcode, records := d.ask(service, namespace, dns.TypeSRV)
	if rcode != dns.RcodeSuccess {
		return dns.RcodeToString[rcode]
	}
	var texts []string
	for _, record := range records {
		if srv, ok := record.(*dns.SRV); ok {
			target, _, _ := strings.Cut(srv.Target, "."+service+"."+namespace+".")
			texts = append(texts, fmt.Sprintf("%d %d %s", srv.Priority, srv.Weight, target))
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// Text is what Ask returns as text: the addresses, sorted as texts, NODATA if there is none, or the response code.
func (d *DNS) Text(service, namespace string) string {
	rcode, addresses := d.Ask(service, namespace)
	switch {
	case rcode != dns.RcodeSuccess:
		return dns.RcodeToString[rcode]
	case len(addresses) == 0:
		return "NODATA"
	}
	texts := make([]string, len(addresses))
	for i, each := range addresses {
		texts[i] = each.String()
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}
