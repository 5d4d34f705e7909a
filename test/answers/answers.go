// SPDX-License-Identifier: Apache-2.0

// Package answers runs the plugin's watch and index without a DNS server, and answers queries from them.
package answers

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

// A DNS answers for the names of one cluster.
type DNS struct {
	source *watch.Source
	stop   func()
}

// Start returns a DNS that reads the cluster of the configuration. The caller must call Stop.
func Start(config *rest.Config) (*DNS, error) {
	ctx, stop := context.WithCancel(context.Background())
	source, err := watch.New(ctx, config, watch.Options{}, &record.Config{Zones: []string{recordtest.Zone}, TTL: 5})
	if err != nil {
		stop()
		return nil, err
	}
	return &DNS{source, stop}, nil
}

// Stop ends the watch.
func (d *DNS) Stop() { d.stop() }

// Ask returns the response code for a query for the A records of a service, and the addresses in the answer in no
// particular order.
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
	name := service + "." + namespace + ".svc." + recordtest.Zone
	answer := recordtest.Ask(d.source.Index(), record.Question{Name: name, Type: qtype, Client: record.Client{Size: dns.MaxMsgSize}})
	if answer.Result == record.NotExist {
		return dns.RcodeNameError, nil
	}
	return dns.RcodeSuccess, answer.Answer
}

// SRV returns the SRV records of a service as sorted text: for each record the priority, the weight, and the host and
// cluster of the target.
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

// Text returns the result of Ask as text: the sorted addresses, NODATA if there are none, or the response code.
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
