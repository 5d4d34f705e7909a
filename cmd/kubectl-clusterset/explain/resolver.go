// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	miekg "github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/answer"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/topology"
)

// A resolver resolves the name of one service with the code of the plugin
// multicluster, from the objects of a cluster and its Corefile.
type resolver struct {
	config record.Config
	// service is nil if the service is not imported.
	service *record.Service
	// prefer is the preference of a headless service, or else of the Corefile.
	prefer topology.Preference
	// place is that of the clients; zero if it is unknown to DNS or differs between clients.
	place topology.Place
	// option returns the arguments of an option of the plugin. It is nil if the Corefile is unknown.
	option func(name string) []string
	// other is the cluster set for which the Corefile serves the zone, nil if that is the set of the service or unknown.
	other *export.Set
	// part reports whether a correct answer may lack some of the addresses.
	part bool
}

func newResolver(f *facts.Facts, service types.NamespacedName, zone string, of *v1beta1.ServiceImport) *resolver {
	r := &resolver{config: record.Config{Zones: []string{zone}}}
	if corefile, err := coredns.ParseCorefile(f.Corefile); err == nil && corefile.Serves(zone) {
		if of := corefile.Set(zone); f.ID != "" && of != f.Set {
			r.other = &of
			return r
		}
		r.option = func(name string) []string { return corefile.Option(zone, name) }
		r.config.IgnoreEmpty, r.part = r.option("ignore") != nil, r.option("max_answers") != nil
	}
	if of == nil {
		return r
	}
	var endpoints []*object.Endpoints
	for _, slice := range f.Slices {
		if member.ServiceOf(slice) == service {
			endpoints = append(endpoints, object.FromEndpointSlice(slice, false))
		}
	}
	r.service = record.Build(&r.config, object.FromServiceImport(of), endpoints)
	r.prefer = r.service.Import.Prefer
	if r.prefer == topology.PreferDefault && r.option != nil && r.service.Import.Headless {
		r.prefer = map[string]topology.Preference{
			"cluster": topology.PreferCluster, "zone": topology.PreferZone,
		}[strings.Join(r.option("prefer"), " ")]
	}
	switch {
	case r.prefer <= topology.PreferNone:
	case r.option == nil, r.prefer == topology.PreferZone && r.zones():
		r.part = true
	case r.option("cluster") != nil:
		r.place = topology.New(nil).Place(f.ID, netip.Addr{})
	}
	return r
}

// near returns the addresses of a type if DNS prefers the endpoints of a cluster, nil unless the service asks for that and
// it is unknown whether DNS does so.
func (r *resolver) near(kind, cluster string) []string {
	if r.option != nil || r.service == nil || r.prefer != topology.PreferCluster {
		return nil
	}
	local := *r
	local.place = topology.New(nil).Place(cluster, netip.Addr{})
	addresses, _ := local.lookup(kind)
	return addresses
}

// zones reports whether DNS knows the zones of clients.
func (r *resolver) zones() bool { return slices.Equal(r.option("prefer"), []string{"zone"}) }

// answer returns the answer to a question for the records of a type.
func (r *resolver) answer(kind uint16) answer.Answer {
	return answer.Lookup(&r.config, r.service, answer.NewCache(), &answer.Question{
		Request: name.Request{Kind: name.Service}, Type: kind, Prefer: r.prefer,
	}, func() answer.Client { return answer.Client{Size: math.MaxInt, Place: r.place} })
}

// usualSRV is the text of SRV records that have no order and no shares.
const usualSRV = "priority 0, weight 100"

// targets returns the priority and weight of the SRV records of a headless service, by the addresses of their targets.
func (r *resolver) targets() map[string]string {
	if r.service == nil || !r.service.Headless {
		return nil
	}
	found := r.answer(miekg.TypeSRV)
	records := map[string]string{}
	for _, record := range found.Answer {
		if srv, ok := record.(*miekg.SRV); ok {
			records[srv.Target] = fmt.Sprintf("priority %d, weight %d", srv.Priority, srv.Weight)
		}
	}
	of := map[string]string{}
	for _, record := range found.Extra {
		of[dns.Data(record)] = records[record.Header().Name]
	}
	return of
}

// lookup returns the addresses of a type, A or AAAA, and whether the name exists.
func (r *resolver) lookup(kind string) (addresses []string, exists bool) {
	if r.service == nil {
		return []string{}, false
	}
	found := r.answer(miekg.StringToType[kind])
	addresses = make([]string, len(found.Answer))
	for i, record := range found.Answer {
		addresses[i] = dns.Data(record)
	}
	slices.SortFunc(addresses, compareAddresses)
	return addresses, found.Result != answer.NotExist
}
