// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	dto "github.com/prometheus/client_model/go"
)

// answer is what a cluster answers for a service: addresses, sorted, or the
// rcode.
func (b *bed) answer(ctx context.Context, c *cluster, name string) (string, error) {
	query := new(dns.Msg).SetQuestion(name+"."+b.namespace+".svc.clusterset.local.", dns.TypeA)
	reply, err := c.dns.ask(ctx, query)
	if err != nil {
		return "", err
	}
	if reply.Rcode != dns.RcodeSuccess {
		return dns.RcodeToString[reply.Rcode], nil
	}
	var addresses []string
	for _, record := range reply.Answer {
		if a, ok := record.(*dns.A); ok {
			addresses = append(addresses, a.A.String())
		}
	}
	slices.Sort(addresses)
	return strings.Join(addresses, " "), nil
}

// A resolver asks a server over one socket.
type resolver struct {
	address string
	client  dns.Client

	mu     sync.Mutex
	socket *dns.Conn
}

func (r *resolver) ask(ctx context.Context, query *dns.Msg) (*dns.Msg, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.socket == nil {
		socket, err := r.client.DialContext(ctx, r.address)
		if err != nil {
			return nil, err
		}
		r.socket = socket
	}
	reply, _, err := r.client.ExchangeWithConnContext(ctx, query, r.socket)
	return reply, err
}

func (r *resolver) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.socket == nil {
		return nil
	}
	return r.socket.Close()
}

// allowed are the answers that may be given at any time of a fault, whatever
// happens: addresses that were given to endpoints or imports, and something at
// all unless a service may go.
type allowed struct {
	mu        sync.Mutex
	addresses map[string]bool
	goes      map[string]bool // names, and names at clusters
	asked     int
}

func newAllowed() *allowed {
	a := &allowed{}
	a.reset()
	return a
}

func (a *allowed) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addresses, a.goes, a.asked = map[string]bool{}, map[string]bool{}, 0
}

// count is how many answers were checked.
func (a *allowed) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// give allows addresses.
func (a *allowed) give(addresses ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, address := range addresses {
		a.addresses[address] = true
	}
}

// mayGo allows that services are not there from now on. One that comes back may
// have another IP.
func (b *bed) mayGo(names []string, in ...*cluster) {
	b.allowed.mu.Lock()
	defer b.allowed.mu.Unlock()
	for _, name := range names {
		if len(in) == 0 {
			b.allowed.goes[name] = true
		}
		for _, c := range in {
			b.allowed.goes[name+" in "+c.Name()] = true
		}
	}
}

// services are those of a view.
func (v view) services() []string { return slices.Sorted(maps.Keys(v)) }

// ofImports begins the IPs of imports: those of the first clusters of a process.
const ofImports = "10.16"

// check says what is wrong with an answer.
func (a *allowed) check(c *cluster, name, answer string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	goes := a.goes[name] || a.goes[name+" in "+c.Name()]
	if goes && (answer == "NXDOMAIN" || answer == "" || strings.HasPrefix(answer, ofImports)) {
		return nil
	}
	if answer == "" {
		return fmt.Errorf("%s answers nothing for %s", c.Name(), name)
	}
	for address := range strings.FieldsSeq(answer) {
		if !a.addresses[address] {
			return fmt.Errorf("%s answers %s for %s", c.Name(), answer, name)
		}
	}
	return nil
}

// watchAnswers asks all clusters for the services over and over until the test
// ends, and fails it where an answer is one that nothing allows.
func (b *bed) watchAnswers(names ...string) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	wrong := map[string]int{}
	var asking sync.WaitGroup
	b.Cleanup(func() {
		cancel()
		asking.Wait()
		for _, each := range slices.Sorted(maps.Keys(wrong)) {
			b.Errorf("%s (%d times)", each, wrong[each])
		}
		b.Logf("%d answers were looked at", b.allowed.count())
	})
	asking.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			for _, c := range b.all() {
				for _, name := range names {
					answer, err := b.answer(ctx, c, name)
					if err == nil {
						err = b.allowed.check(c, name, answer)
					}
					if err != nil && ctx.Err() == nil {
						wrong[err.Error()]++
					}
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
}

// metric returns a metric of the cluster's controller, nil where it has none
// with these labels.
func (c *cluster) metric(name string, labels map[string]string) (*dto.Metric, error) {
	families, err := c.options.Registry.Gather()
	if err != nil {
		return nil, err
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			if maps.Equal(labelsOf(metric), labels) {
				return metric, nil
			}
		}
	}
	return nil, nil
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}
