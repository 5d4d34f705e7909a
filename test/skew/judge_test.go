// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// asked are the headless services whose answers are judged.
var asked = []string{"db", "pay", "ledger", "edge", "negative", "private"}

// plain is exported by all clusters all the time, without any policy.
const plain = "db"

// A place is an address in a cluster.
type place struct{ cluster, address string }

// A judge judges each state of the slices of all clusters, and answers of their DNS.
type judge struct {
	mu sync.Mutex
	// forbidden are addresses that a cluster may not have, and kept those whose copies it may not lose.
	forbidden, kept map[place]bool
	has             map[string]map[string][]string // addresses by cluster and slice
	servers         map[string]string              // DNS by cluster
	wrong           []string
	events, answers int
}

func newJudge() *judge {
	return &judge{
		forbidden: map[place]bool{}, kept: map[place]bool{}, has: map[string]map[string][]string{},
		servers: map[string]string{},
	}
}

// forbid has a cluster never have addresses again, once the judge has seen that it has none of them.
func (j *judge) forbid(c *cluster, addresses ...string) { j.set(j.forbidden, c, false, addresses) }

// keep has a cluster never lose the copies of addresses, once the judge has seen them.
func (j *judge) keep(c *cluster, addresses ...string) { j.set(j.kept, c, true, addresses) }

// set begins a rule for addresses that a cluster has or has not.
func (j *judge) set(rule map[place]bool, c *cluster, has bool, addresses []string) {
	c.t.Helper()
	controlplanetest.Eventually(c.t, "judge", func(context.Context) error {
		j.mu.Lock()
		defer j.mu.Unlock()
		all := j.all(c.Name())
		for _, address := range addresses {
			if slices.Contains(all, address) != has {
				return fmt.Errorf("%s has %v", c.Name(), all)
			}
		}
		for _, address := range addresses {
			rule[place{c.Name(), address}] = true
		}
		return nil
	})
}

// allow ends forbid.
func (j *judge) allow(c *cluster, addresses ...string) { j.end(j.forbidden, c, addresses) }

// release ends keep.
func (j *judge) release(c *cluster, addresses ...string) { j.end(j.kept, c, addresses) }

func (j *judge) end(rule map[place]bool, c *cluster, addresses []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, address := range addresses {
		delete(rule, place{c.Name(), address})
	}
}

// all returns the addresses that the slices of a cluster have.
func (j *judge) all(cluster string) []string {
	return slices.Concat(slices.Collect(maps.Values(j.has[cluster]))...)
}

// serve sets where the DNS of a cluster is.
func (j *judge) serve(cluster, address string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.servers[cluster] = address
}

func (j *judge) note(format string, args ...any) {
	j.wrong = append(j.wrong, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// look judges the slices of a cluster.
func (j *judge) look(cluster string) {
	all := j.all(cluster)
	for _, address := range all {
		if j.forbidden[place{cluster, address}] {
			j.note("a slice of %s has %s, which is forbidden", cluster, address)
		}
	}
	for kept := range j.kept {
		if kept.cluster == cluster && !slices.Contains(all, kept.address) {
			j.note("%s lost its copy of %s", cluster, kept.address)
		}
	}
}

// watch judges a cluster until the test ends.
func (j *judge) watch(t *testing.T, plane *controlplane.Cluster) {
	t.Helper()
	handle := func(object any, exists bool) {
		slice, ok := object.(*discoveryv1.EndpointSlice)
		if !ok || !export.IsManaged(slice) || slice.Namespace != namespace {
			return
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		j.events++
		has := j.has[plane.Name()]
		if has == nil {
			has = map[string][]string{}
			j.has[plane.Name()] = has
		}
		delete(has, slice.Name)
		if exists {
			for _, each := range slice.Endpoints {
				has[slice.Name] = append(has[slice.Name], each.Addresses...)
			}
		}
		j.look(plane.Name())
	}
	factory := informers.NewSharedInformerFactory(plane.Client(), 0)
	_, err := factory.Discovery().V1().EndpointSlices().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { handle(object, true) },
		UpdateFunc: func(_, object any) { handle(object, true) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			handle(object, false)
		},
	})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { factory.Start(ctx.Done()); <-ctx.Done(); factory.Shutdown() })
	running.Go(func() { j.query(ctx, plane.Name()) })
	t.Cleanup(func() { stop(); running.Wait() })
}

// query asks the DNS of a cluster, and judges what it answers: forbidden addresses, and for the plain service nothing.
func (j *judge) query(ctx context.Context, cluster string) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		service := asked[i%len(asked)]
		j.mu.Lock()
		server, forbidden, promised := j.servers[cluster], maps.Clone(j.forbidden), j.kept[place{cluster, "10.64.0.1"}]
		j.mu.Unlock()
		if server == "" {
			continue
		}
		addresses, err := ask(ctx, server, service)
		if err != nil {
			continue // a server that starts or ends
		}
		j.mu.Lock()
		j.answers++
		for _, address := range addresses {
			if forbidden[place{cluster, address}] {
				j.note("DNS of %s answers %s for %s, which is forbidden", cluster, address, service)
			}
		}
		if service == plain && promised && len(addresses) == 0 {
			j.note("DNS of %s answers nothing for %s", cluster, service)
		}
		j.mu.Unlock()
	}
}

// verdict fails the test for what was wrong since it was last called.
func (j *judge) verdict(t *testing.T) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, each := range j.wrong {
		t.Error(each)
	}
	j.wrong = nil
}

// ask returns the addresses that a DNS server answers for a service, sorted, none if the name does not exist.
func ask(ctx context.Context, server, service string) ([]string, error) {
	question := new(dns.Msg).SetQuestion(service+"."+namespace+".svc.clusterset.local.", dns.TypeA)
	client := dns.Client{Timeout: 2 * time.Second}
	response, _, err := client.ExchangeContext(ctx, question, server)
	switch {
	case err != nil:
		return nil, err
	case response.Rcode != dns.RcodeSuccess && response.Rcode != dns.RcodeNameError:
		return nil, fmt.Errorf("%s for %s", dns.RcodeToString[response.Rcode], service)
	}
	var addresses []string
	for _, each := range response.Answer {
		if a, ok := each.(*dns.A); ok {
			addresses = append(addresses, a.A.String())
		}
	}
	slices.Sort(addresses)
	return addresses, nil
}
