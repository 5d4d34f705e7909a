// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"time"
)

// mostEndpoints is the most endpoints of one Service.
const mostEndpoints = 4

// leastExported is the number of services that a cluster keeps exporting. If a member's list lacks more than half of
// its services, the reader keeps them, and that takes minutes.
const leastExported = 3

// Nodes is the number of nodes on which pods run, n0 and so on. Not all of them need exist.
const Nodes = 3

// A Cluster has the services of one cluster, by name. It is not safe for concurrent use.
type Cluster struct {
	Services map[string]Service
	// Number identifies the cluster: it is part of the addresses.
	Number int
	serial int // of the last endpoint
}

// Fresh returns an endpoint with an address that was never used before.
func (c *Cluster) Fresh() Endpoint {
	c.serial++
	return Endpoint{
		Address: netip.AddrFrom4([4]byte{10, byte(200 + c.Number), byte(c.serial >> 8), byte(c.serial)}),
		Host:    fmt.Sprintf("pod-%d", c.serial), Node: fmt.Sprintf("n%d", c.serial%Nodes),
		Ready: true, Serving: true,
	}
}

// shared returns the number of services that the cluster exports.
func (c *Cluster) shared() int {
	count := 0
	for _, s := range c.Services {
		if s.Shared() {
			count++
		}
	}
	return count
}

// Begin returns the initial service for each name, and records it: nine of ten are exported, and every second one is
// headless.
func (c *Cluster) Begin(random *rand.Rand, names []string) []Service {
	c.Services = map[string]Service{}
	var all []Service
	for i, name := range names {
		s := Service{
			Name: name, Present: true, Exported: random.IntN(10) < 9 || c.shared()+len(names)-i <= leastExported,
			Headless: i%2 == 0, Ports: slices.Clone(portSets[0]), Affinity: "None",
			Endpoints: []Endpoint{c.Fresh(), c.Fresh()},
		}
		c.Services[name] = s
		all = append(all, s)
	}
	return all
}

// Operate draws an operation on a random service. It returns the new state and the kind of the operation; changed is
// false if the operation has no effect.
func (c *Cluster) Operate(random *rand.Rand) (next Service, kind string, changed bool) {
	total := 0
	for _, each := range operations {
		total += each.weight
	}
	order, at := slices.Sorted(maps.Keys(c.Services)), random.IntN(total)
	for _, each := range operations {
		if at -= each.weight; at < 0 {
			next = c.Services[order[random.IntN(len(order))]].Clone()
			return next, each.kind, each.change(c, random, &next) && !reflect.DeepEqual(next, c.Services[next.Name])
		}
	}
	panic("no operation")
}

// Missing returns the services that are exported but do not exist, in the form in which to create them.
func (c *Cluster) Missing() (all []Service) {
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		if s := c.Services[name].Clone(); s.Exported && !s.Present {
			s.Present = true
			all = append(all, s)
		}
	}
	return all
}

// portSets are the ports of Services. Their names and numbers conflict with each other.
var portSets = [][]Port{
	{{Name: "http", Protocol: "TCP", Number: 80}},
	{{Name: "http", Protocol: "TCP", Number: 80}, {Name: "metrics", Protocol: "TCP", Number: 9100}},
	{{Name: "http", Protocol: "TCP", Number: 8080}},
	{{Name: "web", Protocol: "TCP", Number: 80}, {Name: "dns", Protocol: "UDP", Number: 53}},
	{{Name: "", Protocol: "TCP", Number: 80}},
}

// An operation changes a service. It returns false if it is not possible.
type operation struct {
	kind   string
	weight int
	change func(*Cluster, *rand.Rand, *Service) bool
}

var operations = []operation{
	{"scale up", 20, func(c *Cluster, _ *rand.Rand, s *Service) bool {
		if len(s.Endpoints) >= mostEndpoints {
			return false
		}
		s.Endpoints = append(s.Endpoints, c.Fresh())
		return true
	}},
	{"scale down", 12, func(_ *Cluster, random *rand.Rand, s *Service) bool {
		at, ok := pick(random, s.Endpoints, func(Endpoint) bool { return true })
		if ok {
			s.Endpoints = slices.Delete(s.Endpoints, at, at+1)
		}
		return ok
	}},
	{"scale to zero", 2, func(_ *Cluster, _ *rand.Rand, s *Service) bool {
		had := len(s.Endpoints) > 0
		s.Endpoints = nil
		return had
	}},
	{"terminate", 8, func(_ *Cluster, random *rand.Rand, s *Service) bool {
		at, ok := pick(random, s.Endpoints, func(e Endpoint) bool { return !e.Terminating })
		if ok {
			s.Endpoints[at].Ready, s.Endpoints[at].Terminating = false, true
		}
		return ok
	}},
	{"readiness", 20, func(_ *Cluster, random *rand.Rand, s *Service) bool {
		at, ok := pick(random, s.Endpoints, func(e Endpoint) bool { return !e.Terminating })
		if ok {
			ready := !s.Endpoints[at].Ready
			s.Endpoints[at].Ready, s.Endpoints[at].Serving = ready, ready
		}
		return ok
	}},
	{"roll out", 8, func(c *Cluster, _ *rand.Rand, s *Service) bool {
		for i := range s.Endpoints {
			s.Endpoints[i] = c.Fresh()
		}
		return len(s.Endpoints) > 0
	}},
	{"export", 10, func(c *Cluster, _ *rand.Rand, s *Service) bool {
		if s.Exported {
			return false
		}
		if len(s.Endpoints) == 0 {
			s.Endpoints = append(s.Endpoints, c.Fresh())
		}
		s.Exported = true
		return true
	}},
	{"withdraw", 6, func(c *Cluster, _ *rand.Rand, s *Service) bool {
		if !s.Exported || c.shared() <= leastExported {
			return false
		}
		s.Exported = false
		return true
	}},
	{"delete Service", 2, func(c *Cluster, _ *rand.Rand, s *Service) bool {
		if !s.Present || c.shared() <= leastExported {
			return false
		}
		s.Present = false
		return true
	}},
	{"create Service", 4, func(_ *Cluster, _ *rand.Rand, s *Service) bool {
		was := s.Present
		s.Present = true
		return !was
	}},
	{"type", 3, func(c *Cluster, _ *rand.Rand, s *Service) bool {
		if !s.Present || c.shared() <= leastExported {
			return false
		}
		s.Headless = !s.Headless
		return true
	}},
	{"ports", 6, func(_ *Cluster, random *rand.Rand, s *Service) bool {
		s.Ports = slices.Clone(portSets[random.IntN(len(portSets))])
		return true
	}},
	{"affinity", 3, func(_ *Cluster, random *rand.Rand, s *Service) bool {
		s.Affinity = []string{"None", "ClientIP"}[random.IntN(2)]
		return true
	}},
	{"exported metadata", 4, func(_ *Cluster, random *rand.Rand, s *Service) bool {
		s.Labels = map[string]string{"tier": fmt.Sprintf("t%d", random.IntN(2))}
		s.Annotations = map[string]string{"example.com/team": fmt.Sprintf("team %d", random.IntN(2))}
		return true
	}},
}

// pick returns the index of a random endpoint for which does is true.
func pick(random *rand.Rand, endpoints []Endpoint, does func(Endpoint) bool) (int, bool) {
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

// Duration draws the duration of a fault: half of them are short, the others last up to longest.
func Duration(random *rand.Rand, longest time.Duration) time.Duration {
	most := []time.Duration{3 * time.Second, 3 * time.Second, 15 * time.Second, longest}[random.IntN(4)]
	return time.Duration(random.Int64N(int64(most))).Round(time.Millisecond)
}
