// SPDX-License-Identifier: Apache-2.0

// Package watch feeds an index from a Kubernetes API server.
//
// The data flows one way:
//
//	API server ── reflector per store ──► objects (compact, by service) ── services that changed ──► publisher ──► index
//
// A store belongs to one resource, in one namespace or in all. A client-go reflector lists and watches the resource and
// puts the objects into the source, in the compact form of package record. The source holds the import and the slices
// of each service and collects the services that changed. The publisher takes all changed services at once, builds and
// publishes them; meanwhile, further changes to a service are coalesced. A change to a service is published at once,
// further changes within the pause after it together at its end.
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

// Resource is the plural name of a watched resource.
type Resource string

// The watched resources. ServiceImports are watched in the groups of the option Imports, Services with
// FallbackServices, Namespaces if they are selected by label, EndpointSlices unless NoEndpoints is set, Nodes if zones
// are preferred.
const (
	ServiceImports    Resource = "serviceimports"
	GKEServiceImports Resource = "serviceimports.net.gke.io"
	EndpointSlices    Resource = "endpointslices"
	// MirroredEndpointSlices are the slices that Kubernetes mirrors from Endpoints objects and that are not in
	// EndpointSlices. They are watched with GKEServiceImports, unless NoEndpoints is set: an import of GKE has an
	// Endpoints object. The slices have no label with the import's name; the import names their Service instead.
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
	// changed holds a value while there are changes to publish. With a buffer of one, signals are coalesced.
	changed chan struct{}

	users int    // of a source that Open returned; guarded by the lock of sources
	end   func() // called after the last user has left

	mu       sync.Mutex
	stores   []*store                       // one for each reflector
	missing  map[*store]bool                // not listed yet; true if the API server refused the list
	objects  map[Resource]map[string]*item  // by namespace/name
	services map[string]map[string]*service // by namespace and key
	moved    bool                           // a node changed
	dirty    map[*service][]time.Time       // the causes of the changes
}

// New returns an unshared source for the API server of the rest configuration; it ignores Options.Kubeconfig. The
// source stops when the context ends.
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
	if len(options.Imports) == 0 {
		options.Imports = []Resource{ServiceImports}
	}
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

// Index returns the index that the source feeds. It has a state once the source is synced.
func (s *Source) Index() *record.Index { return s.index }

// Topology returns the topology of the nodes that are known.
func (s *Source) Topology() *record.Topology { return s.topology.Load() }

// Synced is closed once everything was listed and published.
func (s *Source) Synced() <-chan struct{} { return s.synced }

// Settled is closed once waiting is useless: the source is synced, or the API server reported all remaining resources
// as missing or forbidden, which only an administrator can change.
func (s *Source) Settled() <-chan struct{} { return s.settled }

// Missing returns the resources that were not listed yet, sorted.
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

// listed reports whether every store was listed. The caller holds the lock.
func (s *Source) listed() bool { return len(s.missing) == 0 }

// signal wakes the publisher, but only after everything was listed. The caller holds the lock.
func (s *Source) signal() {
	if !s.listed() {
		return
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// publishAll publishes changes until the context ends.
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

// publish updates the index with the services that changed since the last call. It reports whether changed services wait.
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
		s.settle() // before synced: a receiver of synced may check settled
		close(s.synced)
	}
	now := s.now()
	for of, caused := range causes {
		for _, cause := range caused {
			if changes[of.key] != nil {
				programming.Observe(now.Sub(cause).Seconds())
			}
		}
	}
	return waiting
}
