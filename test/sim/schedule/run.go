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
	// bound is how long a change may take over a way on which nothing is broken: a watch that failed over and over is
	// tried again within 23 s, and a member that was silent for 30 s is demoted.
	bound = 45 * time.Second
	// patience is how long it may take until all clusters have the same once all
	// is whole: a member that lost most of its exports is held for 5 minutes.
	patience = 8 * time.Minute
	// often is how often all that clients see is judged, and calm how long nothing is to be written in the end.
	often, calm = time.Second, 90 * time.Second
	// quick is after how long a change has surely arrived while all is whole.
	quick = 10 * time.Second
)

// A Result is the outcome of a schedule.
type Result struct {
	// Log is what happened, with the virtual times, oldest first.
	Log []string
	// Findings are what must not be.
	Findings []string
	// Writes are those of the controllers without Leases, and Changes what they were for.
	Writes, Changes int
}

// A run carries out a schedule. All of it happens in one goroutine.
type run struct {
	Result
	set      *sim.ClusterSet
	clusters []*cluster
	names    []string // of the clusters
	judge    judges
	networks map[string]string    // of the clusters, by name; nil if there are none
	services []string             // all names that any cluster may have
	pending  []heal               // in the order of their times
	busy     map[string]time.Time // since when a fault concerns a target
	looked   time.Time
	// lookEvery is how often all that clients see is judged.
	lookEvery time.Duration
	// silent is since when a cluster surely hears nothing of another.
	silent map[way]time.Time
	// held are ways that are blocked until all clusters have the same.
	held []way
	// touched are all objects but Leases that were written while a calm lasts.
	calm    bool
	touched []string
	limits  limits
	// used has pairs of addresses of the placed service of which the second one was left out although the first was used,
	// and where.
	used map[[2]string]string
}

// A heal ends a fault.
type heal struct {
	at   time.Time
	what string
	run  func()
}

// Run carries out a schedule on a simulated cluster set. t fails only if that is not possible: the findings are in the result.
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
		r.until(time.Now().Add(bound)) // what is owed by now is judged
		r.settle(s)
	})
	return result
}

func (r *run) note(format string, args ...any) {
	r.Log = append(r.Log, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// find notes what must not be. Only the first of many is of use.
func (r *run) find(format string, args ...any) {
	const most = 12
	if len(r.Findings) < most {
		r.note("FINDING "+format, args...)
		r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
	}
}

// until lets time pass, ends the faults that end meanwhile and looks.
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

// happen carries out an event.
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

// fault begins a fault unless something else is wrong with its targets.
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
		r.hold(ways, nil) // what was withdrawn during the fault lacks in a list after it
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

// hold expects clusters to keep for minutes what they have of a member, where it lists few of the services that they imported.
// In before is what it showed each moments ago, none if that is what it shows now.
func (r *run) hold(ways []way, before map[string]sets.Set[string]) {
	of := func(name string) *cluster { return r.clusters[slices.Index(r.names, name)] }
	for _, each := range ways {
		if each.from != each.to && of(each.from).lost(of(each.to), before[each.to]) {
			r.held = append(r.held, each)
			r.judge.Block(each)
		}
	}
}

// settle asserts what holds once all is whole.
func (r *run) settle(s Schedule) {
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
	r.lookEvery = 5 * often                   // every write is seen, and nothing else changes what clients see
	r.until(time.Now().Add(70 * time.Second)) // members that failed often are taken for fresh
	r.drain()
	r.calm = true
	r.rests("while nothing happens")
	random := rand.New(rand.NewPCG(s.Seed, 8))
	r.weighed()
	for range 3 {
		r.clusters[random.IntN(len(r.clusters))].reweigh(random)
		r.until(time.Now().Add(quick))
		r.weighed()
	}
	r.touched = nil
	// Controllers that look at everything anew find nothing to write: what they wrote before is what they decide.
	for _, c := range r.clusters {
		c.Restart()
	}
	r.rests("after a restart of all controllers")
	r.proportion()
}

// rests asserts that nothing is written for a while.
func (r *run) rests(when string) {
	r.until(time.Now().Add(calm))
	r.drain()
	if len(r.touched) > 0 {
		r.find("%d writes %s for %s, want none but Leases: %v", len(r.touched), when, calm, r.touched[:min(10, len(r.touched))])
	}
}

// proportion asserts that what was written is in proportion to what changed.
func (r *run) proportion() {
	most := writesPerChange * len(r.clusters) * (r.Changes + len(r.clusters)*(len(r.services)+1))
	if r.Writes > most {
		r.find("%d writes for %d changes in %d clusters, want at most %d", r.Writes, r.Changes, len(r.clusters), most)
	}
}

// writesPerChange is how many objects a controller writes at most for a change.
const writesPerChange = 4
