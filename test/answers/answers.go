// SPDX-License-Identifier: Apache-2.0

// Package answers runs the plugin's watch and index without a DNS server around them, and asks for names.
package answers

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/answer"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

// A DNS knows the names of one cluster.
type DNS struct {
	source *watch.Source
	index  *index.Index
	stop   func()
}

// Start returns a DNS that reads the cluster of a config. The caller stops it.
func Start(config *rest.Config, observer watch.Observer) (*DNS, error) {
	return StartWith(config, watch.Options{}, observer)
}

// StartWith is Start with what to watch.
func StartWith(config *rest.Config, options watch.Options, observer watch.Observer) (*DNS, error) {
	source, stop, err := watch.New(config, options, observer)
	if err != nil {
		return nil, err
	}
	return &DNS{source, source.View(&record.Config{Zones: []string{"clusterset.local."}, TTL: 5}), stop}, nil
}

// Stop ends it.
func (d *DNS) Stop() {
	d.source.Release(d.index)
	d.stop()
}

// States says how each watch is.
func (d *DNS) States() []watch.State { return d.source.States() }

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
	snapshot := d.index.Snapshot()
	if snapshot == nil {
		return dns.RcodeServerFailure, nil
	}
	query := service + "." + namespace + ".svc"
	found := snapshot.Lookup(&answer.Question{
		Name: query + ".clusterset.local.", Type: qtype,
		Request: name.Parse(query),
	}, func() answer.Client { return answer.Client{Size: dns.MaxMsgSize} })
	if found.Result == answer.NotExist {
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

// Unobserved is an observer that does nothing.
type Unobserved struct{}

// Objects implements watch.Observer, as the others do.
func (Unobserved) Objects(watch.Resource, int) {}

// Totals does nothing.
func (Unobserved) Totals(_, _ index.Totals) {}

// Asked does nothing.
func (Unobserved) Asked(watch.Resource, string, error) {}

// Programmed does nothing.
func (Unobserved) Programmed(bool, time.Duration) {}

// Undecodable does nothing.
func (Unobserved) Undecodable(watch.Resource, string, error) {}
