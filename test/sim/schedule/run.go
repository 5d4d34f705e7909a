// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle"
)

const (
	// bound is the longest time for a change over a way without faults: a watch that failed repeatedly is retried
	// within 23 s, and a member without heartbeats is demoted after 30 s.
	bound = 45 * time.Second
	// patience is the longest time until all clusters agree after the last fault: if a member lost most of its exports,
	// readers keep them for 5 minutes.
	patience = 8 * time.Minute
	// often is how often the view of clients is judged, and calm how long nothing may be written at the end.
	often, calm = time.Second, 90 * time.Second
)

// A Result is the outcome of a schedule.
type Result struct {
	// Log has the events with their virtual times, oldest first.
	Log []string
	// Findings are the violations.
	Findings []string
	// Writes counts the controllers' writes except Leases, and Changes counts their causes.
	Writes, Changes int
}

// A run carries out a schedule in a single goroutine.
type run struct {
	Result
	set      *sim.ClusterSet
	clusters []*cluster
	names    []string // of the clusters
	judge    judges
	networks map[string]string    // of the clusters, by name; nil if there are none
	services []string             // the names that services of any cluster may have
	pending  []heal               // sorted by time
	busy     map[string]time.Time // begin of the fault that affects a target
	looked   time.Time
	// lookEvery is how often the view of clients is judged.
	lookEvery time.Duration
	// silent is the time since when no heartbeat of a cluster arrives in another.
	silent map[way]time.Time
	// held are ways that stay blocked until all clusters agree.
	held []way
	// touched are the objects except Leases that were written during calm.
	calm    bool
	touched []string
	limits  limits
	// used has pairs of addresses of the placed service: the first was used while the second was not. The value is the
	// cluster where that was seen.
	used map[[2]string]string
}

// A heal ends a fault.
type heal struct {
	at   time.Time
	what string
	run  func()
}

// Run carries out a schedule on a simulated cluster set. t fails only if that is impossible; the result has the findings.
func Run(t *testing.T, s Schedule) (result Result) {
	t.Helper()
	sim.RunIdle(t, s.names(), func(t *testing.T, set *sim.ClusterSet) {
		t.Helper()
		r := &run{
			set: set, names: s.names(), busy: map[string]time.Time{}, silent: map[way]time.Time{},
			networks: map[string]string{}, judge: judges{}, lookEvery: often,
			used: map[[2]string]string{},
		}
		defer func() { result = r.Result }()
		for i, name := range r.names {
			r.judge[name] = oracle.NewJudge(time.Now(), bound, name, r.names...)
			if s.Networks != nil {
				r.networks[name] = s.Networks[i]
			}
		}
		random := rand.New(rand.NewPCG(s.Seed, 2))
		for i, each := range set.Clusters() {
			r.clusters = append(r.clusters, newCluster(r, each, i))
			r.clusters[i].enter(s)
		}
		for _, c := range r.clusters {
			names := []string{"own-" + c.Name, "a", "b", "c", "d"}
			r.services = append(r.services, names...)
			for _, service := range c.load.Begin(random, names) {
				c.write(oracle.Service{Name: service.Name}, service)
			}
		}
		slices.Sort(r.services)
		r.services = slices.Compact(r.services)
		r.limits = newLimits(s)
		for _, c := range r.clusters {
			c.placed.drawEndpoints(random, c.load.Number)
			c.writePlaced()
		}
		set.Start()
		if !r.converge("at the beginning", time.Minute) {
			return
		}
		r.note("the schedule begins")
		began := time.Now()
		for _, e := range s.Events {
			r.until(began.Add(e.At))
			r.happen(e)
		}
		for len(r.pending) > 0 {
			r.until(r.pending[0].at)
		}
		r.until(time.Now().Add(bound)) // judge changes that must have arrived by now
		r.settle()
	})
	return result
}

func (r *run) note(format string, args ...any) {
	r.Log = append(r.Log, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// find records a violation. Only the first of them are kept.
func (r *run) find(format string, args ...any) {
	const most = 12
	if len(r.Findings) < most {
		r.note("FINDING "+format, args...)
		r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
	}
}

// until advances time, heals the faults that end meanwhile, and judges.
func (r *run) until(end time.Time) {
	for {
		next := r.looked.Add(r.lookEvery)
		if len(r.pending) > 0 && r.pending[0].at.Before(next) {
			next = r.pending[0].at
		}
		if next.After(end) {
			sim.Wait(time.Until(end))
			return
		}
		sim.Wait(time.Until(next))
		synctest.Wait()
		for len(r.pending) > 0 && !r.pending[0].at.After(next) {
			first := r.pending[0]
			r.pending = r.pending[1:]
			r.note("%s", first.what)
			first.run()
		}
		if !next.Before(r.looked.Add(r.lookEvery)) {
			r.look()
		}
	}
}

// happen executes an event.
func (r *run) happen(e Event) {
	c, random := r.clusters[e.Cluster], rand.New(rand.NewPCG(e.Random, 3))
	if e.Kind == operation {
		if c.away {
			return
		}
		if next, kind, changed := c.load.Operate(random); changed {
			r.note("%s: %s: %+v", c.Name, kind, next)
			r.Changes++
			c.write(c.load.Services[next.Name], next)
		}
		return
	}
	switch e.Kind {
	case reweigh:
		c.reweigh(random)
		return
	case renode:
		c.changeNode(random)
		return
	}
	for _, each := range faults {
		if each.kind == e.Kind {
			r.fault(each, &happening{run: r, Event: e, c: c, other: r.clusters[e.Other], random: random})
		}
	}
}

// fault begins a fault unless another fault affects its targets.
func (r *run) fault(f fault, h *happening) {
	targets := f.targets(h)
	if slices.ContainsFunc(targets, func(target string) bool { return !r.busy[target].IsZero() }) {
		return
	}
	what := fmt.Sprintf("%s: %s", h.c.Name, f.kind)
	if f.pair {
		what += " " + h.other.Name
	}
	var ways []way
	if f.ways != nil {
		ways = f.ways(h)
	}
	r.judge.Block(ways...)
	r.note("%s begins", what)
	end := f.begin(h)
	switch {
	case end == nil:
		r.judge.Clear(time.Now(), ways...)
		r.note("%s: done %s", what, h.told)
		r.Changes++
		return
	case h.told != "":
		r.note("%s: %s", what, h.told)
	}
	r.Changes++
	for _, target := range targets {
		r.busy[target] = time.Now()
	}
	if f.silences {
		for _, each := range ways {
			if each.from != each.to && r.silent[each].IsZero() {
				r.silent[each] = time.Now()
			}
		}
	}
	healed := heal{at: time.Now().Add(h.Lasts), what: what + " ends", run: func() {
		r.hold(ways, nil) // lists after the fault lack the exports withdrawn during it
		end()
		for _, target := range targets {
			delete(r.busy, target)
		}
		if f.silences {
			for _, each := range ways {
				delete(r.silent, each)
			}
		}
		r.judge.Clear(time.Now(), ways...)
	}}
	at, _ := slices.BinarySearchFunc(r.pending, healed.at, func(h heal, at time.Time) int { return h.at.Compare(at) })
	r.pending = slices.Insert(r.pending, at, healed)
}

// hold expects readers to keep a member's exports for minutes if its lists lack most services that they imported.
// before has the services that the member showed each reader moments ago; empty means the current ones.
func (r *run) hold(ways []way, before map[string]sets.Set[string]) {
	of := func(name string) *cluster { return r.clusters[slices.Index(r.names, name)] }
	for _, each := range ways {
		if each.from != each.to && of(each.from).lost(of(each.to), before[each.to]) {
			r.held = append(r.held, each)
			r.judge.Block(each)
		}
	}
}

// settle checks the state after all faults are healed.
func (r *run) settle() {
	r.note("all is whole")
	for _, c := range r.clusters {
		for _, service := range c.load.Missing() {
			c.write(c.load.Services[service.Name], service)
		}
	}
	for _, c := range r.clusters {
		c.writePlaced()
	}
	if !r.converge("after all was whole", patience) {
		return
	}
	r.judge.Clear(time.Now(), r.held...)
	r.lookEvery = 5 * often                   // nothing else changes the view of clients, and writes are still seen
	r.until(time.Now().Add(70 * time.Second)) // members that failed often become fresh
	r.drain()
	r.calm = true
	r.rests("while nothing happens")
	r.touched = nil
	// Restarted controllers reconcile everything and must find nothing to write.
	for _, c := range r.clusters {
		c.Restart()
	}
	r.rests("after a restart of all controllers")
	r.proportion()
}

// rests asserts that nothing is written during calm.
func (r *run) rests(when string) {
	r.until(time.Now().Add(calm))
	r.drain()
	if len(r.touched) > 0 {
		r.find("%d writes %s for %s, want none but Leases: %v", len(r.touched), when, calm, r.touched[:min(10, len(r.touched))])
	}
}

// proportion asserts that the number of writes is in proportion to the changes.
func (r *run) proportion() {
	most := writesPerChange * len(r.clusters) * (r.Changes + len(r.clusters)*(len(r.services)+1))
	if r.Writes > most {
		r.find("%d writes for %d changes in %d clusters, want at most %d", r.Writes, r.Changes, len(r.clusters), most)
	}
}

// writesPerChange is the most objects that each controller may write per change, on average.
const writesPerChange = 4
