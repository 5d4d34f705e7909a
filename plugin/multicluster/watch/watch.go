// SPDX-License-Identifier: Apache-2.0

// Package watch feeds an index from a Kubernetes API server.
//
// The data flows one way:
//
//	API server ── reflector per store ──► objects (compact, by service) ── services that changed ──► publisher ──► index
//
// A store is of a resource, in one namespace or in all. A client-go reflector lists and watches it and puts the objects
// into the source, in the compact form of package record. The source holds the import and the slices of each service and
// collects the services that changed. The publisher takes all of them at once, builds and publishes them: while it is busy,
// changes to the same service are coalesced. A service is published at once, and again after a pause that all changes in
// between share.
//
// Records stay in use while the API server is unreachable. Missing or forbidden resources are retried.
package watch

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
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
	// MirroredEndpointSlices are those that Kubernetes makes of Endpoints objects, unless they are among EndpointSlices.
	// They are watched if GKEServiceImports and endpoints are: behind an import of GKE is an Endpoints object.
	// No label of its slices names the import, which names its Service instead.
	MirroredEndpointSlices Resource = "endpointslices.mirrored"
	Services               Resource = "services"
	Namespaces             Resource = "namespaces"
	Nodes                  Resource = "nodes"
)

// Source is a running watch of one API server, and the index that it feeds. Its methods are safe for concurrent use.
type Source struct {
	options  Options
	config   *record.Config
	index    *record.Index
	now      func() time.Time
	topology atomic.Pointer[record.Topology]
	synced   chan struct{}
	settled  chan struct{}
	settle   func() // closes settled
	// changed has a value in it while there are changes to publish. Its size of one makes many signals one.
	changed chan struct{}

	users int    // of a source that Open returned; the lock of sources guards it
	end   func() // called after the last of them

	mu       sync.Mutex
	stores   []*store                       // one for each reflector
	missing  map[*store]bool                // not listed yet; true if the API server refuses to
	objects  map[Resource]map[string]*item  // by namespace/name
	services map[string]map[string]*service // by namespace and key
	moved    bool                           // a node changed
	dirty    map[*service][]time.Time       // what the changes' causes were
}

// New returns a source of its own for the API server that rest reaches, whatever Options.Kubeconfig says. It ends with
// the context.
func New(ctx context.Context, rest *rest.Config, options Options, config *record.Config) (*Source, error) {
	clients, err := newClients(rest)
	if err != nil {
		return nil, err
	}
	s := newSource(options, config)
	for _, r := range s.reflectors(clients) {
		go r.RunWithContext(klog.NewContext(ctx, logr.Discard()))
	}
	go s.publishAll(ctx)
	return s, nil
}

func newSource(options Options, config *record.Config) *Source {
	s := &Source{
		options:  options,
		config:   config,
		index:    record.NewIndex(config),
		now:      time.Now,
		synced:   make(chan struct{}),
		settled:  make(chan struct{}),
		changed:  make(chan struct{}, 1),
		missing:  make(map[*store]bool),
		objects:  make(map[Resource]map[string]*item),
		services: make(map[string]map[string]*service),
		dirty:    make(map[*service][]time.Time),
	}
	s.settle = sync.OnceFunc(func() { close(s.settled) })
	s.topology.Store(record.NewTopology(nil))
	return s
}

// Index is what the source feeds. It has a state as soon as the source is synced.
func (s *Source) Index() *record.Index { return s.index }

// Topology is where clients are, as far as known.
func (s *Source) Topology() *record.Topology { return s.topology.Load() }

// Synced is closed once everything was listed and published.
func (s *Source) Synced() <-chan struct{} { return s.synced }

// Settled is closed once nothing is to be waited for: the source is synced, or the API server said that all that is
// missing does not exist or is forbidden, which only an administrator can change.
func (s *Source) Settled() <-chan struct{} { return s.settled }

// Missing are the resources that were not listed yet, sorted.
func (s *Source) Missing() []Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	var resources []Resource
	for each := range s.missing {
		resources = append(resources, each.resource)
	}
	slices.Sort(resources)
	return slices.Compact(resources)
}

// listed reports whether everything was listed once. The lock is held.
func (s *Source) listed() bool { return len(s.missing) == 0 }

// signal wakes the publisher once everything was listed. The lock is held.
func (s *Source) signal() {
	if !s.listed() {
		return
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// publishAll publishes what changes until the context ends.
func (s *Source) publishAll(ctx context.Context) {
	var next <-chan time.Time // while services wait
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		case <-next:
		}
		if s.publish() {
			next = time.After(pause / 10)
		}
	}
}

// publish updates the index with the services that changed since the last time. It reports whether some wait.
func (s *Source) publish() (waiting bool) {
	s.mu.Lock()
	if s.moved {
		var nodes []record.Node
		for _, each := range s.objects[Nodes] {
			nodes = append(nodes, *each.content.(*record.Node))
		}
		s.topology.Store(record.NewTopology(nodes))
		s.moved = false
	}
	changes, causes := s.take(s.now())
	waiting = len(s.dirty) > 0
	s.mu.Unlock()
	synced := s.index.State() != nil
	if len(changes) == 0 && synced {
		return waiting
	}
	s.index.Update(uint32(s.now().Unix()), changes)
	if !synced {
		s.settle() // first: what waits for the sync may ask whether this is settled
		close(s.synced)
	}
	now := s.now()
	for of, caused := range causes {
		for _, cause := range caused {
			if service := changes[of.key]; service != nil {
				programming[service.Import.Headless].Observe(now.Sub(cause).Seconds())
			}
		}
	}
	return waiting
}
