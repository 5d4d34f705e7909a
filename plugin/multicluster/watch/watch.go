// SPDX-License-Identifier: Apache-2.0

// Package watch feeds indexes from a Kubernetes API server.
//
// The data flows one way:
//
//	API server ── reflector per scope ──► inputs (compact, by service) ── keys that changed ──► publisher ──► indexes
//
// A scope is a resource, in one namespace or in all. A client-go reflector lists and watches it and puts the objects
// into the inputs, in the compact form of package object. The inputs hold the import and the slices of each service and
// collect the keys of changed services. The publisher takes all keys at once, builds the services and publishes them:
// while it is busy, changes to the same service are coalesced. A service is published at once, and again after a pause
// that all changes in between share.
//
// Records stay in use while the API server is unreachable. Missing or forbidden resources are retried.
package watch

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/topology"
)

// Resource is the plural name of what is watched.
type Resource string

// The resources. ServiceImports are watched in the groups that the operator lists, Services if they are a fallback,
// Namespaces if they are selected by label, EndpointSlices unless endpoints are not served, Nodes if zones are
// preferred.
const (
	ServiceImports    Resource = "serviceimports"
	GKEServiceImports Resource = "serviceimports.net.gke.io"
	EndpointSlices    Resource = "endpointslices"
	Services          Resource = "services"
	Namespaces        Resource = "namespaces"
	Nodes             Resource = "nodes"
)

// Observer observes a source for metrics and the log. Its methods must be quick and safe for concurrent use.
type Observer interface {
	// Objects is called with the change of the number of objects of a resource.
	Objects(resource Resource, delta int)
	// Totals is called with what a source served before and serves now.
	Totals(before, after index.Totals)
	// Asked is called with the outcome of the beginning of a list or watch of a resource, in one namespace or, if that
	// is empty, in all.
	Asked(resource Resource, namespace string, err error)
	// Undecodable is called once with the error of an object that cannot be decoded and is left out.
	Undecodable(resource Resource, object string, err error)
	// Programmed is called with the latency of a change of endpoints, from its cause to the answer.
	Programmed(headless bool, latency time.Duration)
}

// State is the state of a resource of a source.
type State struct {
	Resource Resource
	// Synced is the time of the last list, event or bookmark; bookmarks come every minute or two. It is zero before the
	// first list.
	Synced time.Time
	// Healthy reports whether the last list or watch began without an error.
	Healthy bool
}

// Source is a running watch of one API server. Its methods are safe for concurrent use.
type Source struct {
	inputs   *inputs
	observer Observer
	contacts []*contact
	now      func() time.Time
	free     func() // returns memory to the operating system
	stop     context.CancelFunc
	running  sync.WaitGroup

	topology atomic.Pointer[topology.Topology]

	// publishing is held while an index is updated or the list of views changes.
	publishing sync.Mutex
	views      []*view
	serial     uint32       // the greatest that any view had
	counted    index.Totals // last reported to the observer

	mu      sync.Mutex
	missing map[scope]bool // not listed yet; true if the API server refuses to
	synced  chan struct{}
	settled chan struct{}
}

// contact is a source's State with a resource.
type contact struct {
	resource Resource
	synced   atomic.Int64 // in nanoseconds since 1970, or 0
	healthy  atomic.Bool
}

func (c *contact) state() State {
	state := State{Resource: c.resource, Healthy: c.healthy.Load()}
	if synced := c.synced.Load(); synced != 0 {
		state.Synced = time.Unix(0, synced)
	}
	return state
}

// view is an index and the number of its users.
type view struct {
	index *index.Index
	users int
}

// start runs the reflectors and the publisher until close.
func start(clients *clients, options Options, observer Observer) *Source {
	ctx, cancel := context.WithCancel(context.Background())
	s := newSource(options, observer, cancel)
	reflectors := s.reflectors(clients, options)
	for _, r := range reflectors {
		if r.resource != Nodes { // names do not wait for what only orders their answers
			s.missing[r.scope] = false
		}
	}
	for _, r := range reflectors {
		s.running.Go(func() { r.run(ctx) })
	}
	s.running.Go(func() { s.publishAll(ctx) })
	return s
}

func newSource(options Options, observer Observer, stop context.CancelFunc) *Source {
	s := &Source{
		inputs:   newInputs(options, observer),
		observer: observer,
		now:      time.Now,
		free:     debug.FreeOSMemory,
		stop:     stop,
		missing:  make(map[scope]bool),
		synced:   make(chan struct{}),
		settled:  make(chan struct{}),
	}
	s.topology.Store(topology.New(nil))
	return s
}

// close ends the watch and waits for its goroutines.
func (s *Source) close() {
	s.stop()
	s.running.Wait()
	s.inputs.forget()
	s.publishing.Lock()
	defer s.publishing.Unlock()
	s.views = nil
	s.count()
}

// Synced is closed once everything was listed.
func (s *Source) Synced() <-chan struct{} { return s.synced }

// Settled is closed once nothing is to be waited for: everything was listed, or the API server said that a resource is
// missing or forbidden, which only an administrator can change.
func (s *Source) Settled() <-chan struct{} { return s.settled }

// Missing are the resources that were not listed yet, sorted.
func (s *Source) Missing() []Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	var resources []Resource
	for of := range s.missing {
		resources = append(resources, of.resource)
	}
	slices.Sort(resources)
	return slices.Compact(resources)
}

// States returns the state of each resource.
func (s *Source) States() []State {
	states := make([]State, len(s.contacts))
	for i, c := range s.contacts {
		states[i] = c.state()
	}
	return states
}

// listed notes that all objects of the scope are in the inputs.
func (s *Source) listed(of scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.missing[of]; !ok {
		return
	}
	delete(s.missing, of)
	s.settle()
	if len(s.missing) == 0 {
		s.inputs.open()
	}
}

// refused notes that the API server has no such resource, or does not let us see it.
func (s *Source) refused(of scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.missing[of]; ok {
		s.missing[of] = true
		s.settle()
	}
}

// settle closes settled if no resource is left to wait for. The lock is held.
func (s *Source) settle() {
	for _, refused := range s.missing {
		if !refused {
			return
		}
	}
	select {
	case <-s.settled:
	default:
		close(s.settled)
	}
}

// View returns the index of a configuration. Users of equal configurations share one. It has a snapshot as soon as the
// source is synced. The user gives it back with Release.
func (s *Source) View(config *record.Config) *index.Index {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	for _, v := range s.views {
		if v.index.Config().Equal(config) {
			v.users++
			return v.index
		}
	}
	v := &view{index: index.New(config), users: 1}
	s.views = append(s.views, v)
	s.setIgnoreEmpty() // before the view gets what there is, so that no change is between them
	select {
	case <-s.synced:
		s.update(v, s.inputs.all())
		s.count()
	default: // the first publication is of all there is
	}
	return v.index
}

// Release gives back what View returned.
func (s *Source) Release(x *index.Index) {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	for i, v := range s.views {
		if v.index != x {
			continue
		}
		if v.users--; v.users == 0 {
			s.views = slices.Delete(s.views, i, i+1)
			s.setIgnoreEmpty()
			s.count()
		}
		return
	}
}

// setIgnoreEmpty tells the inputs whether a view ignores empty services.
func (s *Source) setIgnoreEmpty() {
	s.inputs.setIgnoreEmpty(slices.ContainsFunc(s.views, func(v *view) bool { return v.index.Config().IgnoreEmpty }))
}

// count reports to the observer what is served. All views have the same objects, so a service or a skip counts once,
// although a name may be too long in the zones of one view alone.
func (s *Source) count() {
	var totals index.Totals
	for _, v := range s.views {
		snapshot := v.index.Snapshot()
		if snapshot == nil {
			continue
		}
		of := snapshot.Totals()
		totals.ClusterSetIP = max(totals.ClusterSetIP, of.ClusterSetIP)
		totals.Headless = max(totals.Headless, of.Headless)
		totals.Addresses = max(totals.Addresses, of.Addresses)
		if len(totals.Skips) == 0 || of.Skips[object.NameTooLong] > totals.Skips[object.NameTooLong] {
			totals.Skips = of.Skips
		}
	}
	s.observer.Totals(s.counted, totals)
	s.counted = totals
}

// publishAll publishes what changes until the context ends.
func (s *Source) publishAll(ctx context.Context) {
	var next <-chan time.Time // when a service that waits can be published
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return
		case <-s.inputs.changed:
		case <-next:
		}
		next = nil
		if wait := s.publish(); wait > 0 {
			next = time.After(wait)
		}
		if first {
			s.running.Go(s.free) // the lists took several times the memory of the records
		}
	}
}

// publish updates all views with the services that changed since the last time. It returns in how long to publish
// again, or 0 if nothing waits.
func (s *Source) publish() (wait time.Duration) {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	s.place()
	now := s.now()
	changed, wait := s.inputs.take(now)
	select {
	case <-s.synced:
		if len(changed) == 0 {
			return wait
		}
	default:
		defer close(s.synced)
	}
	for _, v := range s.views {
		s.update(v, changed)
	}
	s.count()
	now = s.now()
	for _, service := range changed {
		for _, cause := range service.causes {
			s.observer.Programmed(service.imported.Headless, now.Sub(cause))
		}
	}
	return wait
}

// update builds the services for one view.
func (s *Source) update(v *view, changed []input) {
	config := v.index.Config()
	changes := build(config, changed)
	now := uint32(s.now().Unix())
	if v.index.Snapshot() == nil && int32(now-s.serial) <= 0 && s.serial != 0 {
		now = s.serial + 1 // another view of these services was ahead of the clock
	}
	v.index.Update(now, changes...)
	snapshot := v.index.Snapshot()
	if s.serial == 0 || int32(snapshot.Serial()-s.serial) > 0 {
		s.serial = snapshot.Serial()
	}
}

// fewServices are built on one processor.
const fewServices = 256

// build makes the record sets of services. Many, as after the first list, are built on all processors.
func build(config *record.Config, changed []input) []index.Change {
	changes := make([]index.Change, len(changed))
	part := func(start, end int) {
		for i, service := range changed[start:end] {
			change := &changes[start+i]
			change.Key = service.key
			if service.imported != nil {
				change.Service = record.Build(config, service.imported, service.slices)
			}
		}
	}
	if len(changed) <= fewServices {
		part(0, len(changed))
		return changes
	}
	var building sync.WaitGroup
	for start := 0; start < len(changed); start += fewServices {
		building.Go(func() { part(start, min(start+fewServices, len(changed))) })
	}
	building.Wait()
	return changes
}
