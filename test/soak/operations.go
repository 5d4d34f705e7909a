// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/soak/truth"
)

const (
	// sharedServices may be exported by any cluster, and ownServices of each
	// cluster by that alone.
	sharedServices, ownServices = 8, 2
	// leastExported is how many services a cluster exports at least: a member
	// whose list lacks more than half of them is held, and that takes minutes.
	leastExported = 6
	mostEndpoints = 4
	// operationEvery is the mean time between two operations in one cluster.
	operationEvery = 300 * time.Millisecond
)

// serviceNames are all that any cluster may have.
func serviceNames() []string {
	var all []string
	for i := range sharedServices {
		all = append(all, fmt.Sprintf("shared-%d", i))
	}
	for _, cluster := range names {
		all = append(all, ownNames(cluster)...)
	}
	return all
}

func ownNames(cluster string) []string {
	var all []string
	for i := range ownServices {
		all = append(all, fmt.Sprintf("%s-%d", cluster, i))
	}
	return all
}

// portSets are what a Service may have. Names and numbers clash between them.
var portSets = [][]truth.Port{
	{{Name: "http", Protocol: "TCP", Number: 80}},
	{{Name: "http", Protocol: "TCP", Number: 80}, {Name: "metrics", Protocol: "TCP", Number: 9100}},
	{{Name: "http", Protocol: "TCP", Number: 8080}},
	{{Name: "web", Protocol: "TCP", Number: 80}, {Name: "dns", Protocol: "UDP", Number: 53}},
	{{Name: "", Protocol: "TCP", Number: 80}},
}

// An operation changes a service, and tells whether it could.
type operation struct {
	kind   string
	weight int
	change func(*writer, *rand.Rand, *service) bool
}

var operations = []operation{
	{"scale up", 20, func(w *writer, _ *rand.Rand, s *service) bool {
		if len(s.endpoints) >= mostEndpoints {
			return false
		}
		s.endpoints = append(s.endpoints, w.fresh())
		return true
	}},
	{"scale down", 12, func(_ *writer, random *rand.Rand, s *service) bool {
		at, ok := pick(random, s.endpoints, func(truth.Endpoint) bool { return true })
		if ok {
			s.endpoints = slices.Delete(s.endpoints, at, at+1)
		}
		return ok
	}},
	{"scale to zero", 2, func(_ *writer, _ *rand.Rand, s *service) bool {
		had := len(s.endpoints) > 0
		s.endpoints = nil
		return had
	}},
	{"terminate", 8, func(_ *writer, random *rand.Rand, s *service) bool {
		at, ok := pick(random, s.endpoints, func(e truth.Endpoint) bool { return !e.Terminating })
		if ok {
			s.endpoints[at].Ready, s.endpoints[at].Terminating = false, true
		}
		return ok
	}},
	{"readiness", 20, func(_ *writer, random *rand.Rand, s *service) bool {
		at, ok := pick(random, s.endpoints, func(e truth.Endpoint) bool { return !e.Terminating })
		if ok {
			ready := !s.endpoints[at].Ready
			s.endpoints[at].Ready, s.endpoints[at].Serving = ready, ready
		}
		return ok
	}},
	{"roll out", 8, func(w *writer, _ *rand.Rand, s *service) bool {
		for i := range s.endpoints {
			s.endpoints[i] = w.fresh()
		}
		return len(s.endpoints) > 0
	}},
	{"export", 10, func(w *writer, _ *rand.Rand, s *service) bool {
		if s.exported {
			return false
		}
		if len(s.endpoints) == 0 {
			s.endpoints = append(s.endpoints, w.fresh())
		}
		s.exported = true
		return true
	}},
	{"un-export", 6, func(w *writer, _ *rand.Rand, s *service) bool {
		if !s.exported || w.shared() <= leastExported {
			return false
		}
		s.exported = false
		return true
	}},
	{"delete Service", 2, func(w *writer, _ *rand.Rand, s *service) bool {
		if !s.present || w.shared() <= leastExported {
			return false
		}
		s.present = false
		return true
	}},
	{"create Service", 4, func(_ *writer, _ *rand.Rand, s *service) bool {
		was := s.present
		s.present = true
		return !was
	}},
	{"type", 3, func(w *writer, _ *rand.Rand, s *service) bool {
		if !s.present || w.shared() <= leastExported {
			return false
		}
		s.headless = !s.headless
		return true
	}},
	{"ports", 6, func(_ *writer, random *rand.Rand, s *service) bool {
		s.ports = slices.Clone(portSets[random.IntN(len(portSets))])
		return true
	}},
	{"affinity", 3, func(_ *writer, random *rand.Rand, s *service) bool {
		s.affinity = []string{"None", "ClientIP"}[random.IntN(2)]
		return true
	}},
	{"exported metadata", 4, func(_ *writer, random *rand.Rand, s *service) bool {
		s.labels = map[string]string{"tier": fmt.Sprintf("t%d", random.IntN(2))}
		s.annotations = map[string]string{"example.com/team": fmt.Sprintf("team %d", random.IntN(2))}
		return true
	}},
}

// pick is one of those that do.
func pick(random *rand.Rand, endpoints []truth.Endpoint, does func(truth.Endpoint) bool) (int, bool) {
	var all []int
	for i, endpoint := range endpoints {
		if does(endpoint) {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return all[random.IntN(len(all))], true
}

// shared is how many services the cluster exports.
func (w *writer) shared() int {
	count := 0
	for _, s := range w.services {
		if s.shared() {
			count++
		}
	}
	return count
}

// newWriter writes what there is at the beginning.
func newWriter(ctx context.Context, c *cluster, random *rand.Rand) *writer {
	w := &writer{cluster: c, services: map[string]service{}}
	all := ownNames(c.Name())
	for i := range sharedServices {
		all = append(all, fmt.Sprintf("shared-%d", i))
	}
	for i, name := range all {
		s := service{
			name: name, present: true, exported: random.IntN(10) < 9 || w.shared()+len(all)-i <= leastExported,
			headless: i%2 == 0, ports: slices.Clone(portSets[0]), affinity: "None",
			endpoints: []truth.Endpoint{w.fresh(), w.fresh()},
		}
		w.services[name] = service{name: name}
		w.write(ctx, s)
	}
	return w
}

// operate changes random services until the context ends. Nothing is changed
// while the API server is down.
func (w *writer) operate(ctx context.Context, random *rand.Rand) {
	total := 0
	for _, each := range operations {
		total += each.weight
	}
	order := slices.Sorted(maps.Keys(w.services))
	for ctx.Err() == nil {
		pause(ctx, time.Duration(random.Int64N(2*int64(operationEvery))))
		// What is begun is finished.
		w.api.Lock()
		if ctx.Err() == nil {
			w.once(context.WithoutCancel(ctx), random, order, random.IntN(total))
		}
		w.api.Unlock()
	}
}

func (w *writer) once(ctx context.Context, random *rand.Rand, order []string, at int) {
	for _, each := range operations {
		if at -= each.weight; at >= 0 {
			continue
		}
		next := w.services[order[random.IntN(len(order))]].clone()
		if each.change(w, random, &next) && !next.equal(w.services[next.name]) {
			w.write(ctx, next)
			w.journal.count("operation: " + each.kind)
		}
		return
	}
}

// settle creates each Service that is missing behind an export.
func (w *writer) settle(ctx context.Context) {
	w.api.Lock()
	defer w.api.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.services)) {
		if s := w.services[name].clone(); s.exported && !s.present {
			s.present = true
			w.write(ctx, s)
		}
	}
}
