// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/topology"
)

// inputs holds the objects that services are built from, by service key, and collects the keys of changed services.
type inputs struct {
	observer Observer
	// changed has a value in it while there are changes to take. Its size of one makes many signals one.
	changed chan struct{}
	// only are the namespaces served, if the operator lists them.
	only map[string]struct{}
	// pause is that between two changes of a service.
	pause time.Duration
	// zones tells that the zones of endpoints are kept.
	zones bool
	// selecting tells that namespaces are selected by label; selected are those.
	selecting bool

	mu       sync.Mutex
	imports  map[Resource]map[string]*object.Import // by namespace/name
	slices   map[Resource]map[string]held           // by namespace/name
	services map[string]*service                    // by the services' keys; those of mirrored slices by theirs
	selected map[string]struct{}
	members  map[string]map[string]struct{} // the keys in services, by namespace
	nodes    map[string]*topology.Node
	moved    bool                   // a node changed
	dirty    map[string][]time.Time // by key: what the changes' causes were
	opened   bool                   // everything was listed once
	// ignoreEmpty is set if a view leaves out ClusterSetIP services without endpoints.
	ignoreEmpty bool

	fallbacks
}

// held is the endpoints of a slice, the service that they belong to, and the time of the change that caused their
// state, in nanoseconds since 1970.
type held struct {
	endpoints *object.Endpoints
	key       string
	cause     int64
}

// service has the objects of one service.
type service struct {
	imported  *object.Import // of ServiceImports
	other     *object.Import // of GKEServiceImports: counts if there is none of the former
	namespace string
	slices    []*object.Endpoints
	taken     time.Time // when it was last taken to be published
}

// input is a copy of what a service is built from. The import is nil if there is none to serve.
type input struct {
	key      string
	imported *object.Import
	slices   []*object.Endpoints
	causes   []time.Time
}

func newInputs(options Options, observer Observer) *inputs {
	in := &inputs{
		observer:  observer,
		changed:   make(chan struct{}, 1),
		pause:     pause,
		zones:     options.Zones,
		selecting: options.NamespaceLabels != "",
		imports:   map[Resource]map[string]*object.Import{ServiceImports: {}, GKEServiceImports: {}},
		slices:    map[Resource]map[string]held{EndpointSlices: {}, MirroredEndpointSlices: {}},
		services:  make(map[string]*service),
		selected:  make(map[string]struct{}),
		members:   make(map[string]map[string]struct{}),
		nodes:     make(map[string]*topology.Node),
		dirty:     make(map[string][]time.Time),

		fallbacks: newFallbacks(options),
	}
	if len(options.Namespaces) > 0 {
		in.only = make(map[string]struct{}, len(options.Namespaces))
		for _, namespace := range options.Namespaces {
			in.only[namespace] = struct{}{}
		}
	}
	return in
}

// serves reports whether the operator's list of namespaces has this one.
func (in *inputs) serves(namespace string) bool {
	if in.only == nil {
		return true
	}
	_, ok := in.only[namespace]
	return ok
}

// of is the place of the import of a resource.
func (s *service) of(resource Resource) **object.Import {
	if resource == GKEServiceImports {
		return &s.other
	}
	return &s.imported
}

// service returns the objects of a service. The lock is held.
func (in *inputs) service(key, namespace string) *service {
	s := in.services[key]
	if s == nil {
		s = &service{namespace: namespace}
		in.services[key] = s
		if in.members[namespace] == nil {
			in.members[namespace] = make(map[string]struct{})
		}
		in.members[namespace][key] = struct{}{}
	}
	return s
}

// answersSlices reports whether answers for a service depend on its slices: it is headless, or a view leaves out
// services without endpoints, or its import lacks addresses that its endpoints stand in for. The lock is held.
func (in *inputs) answersSlices(key string) bool {
	s := in.services[key]
	if s == nil {
		return false
	}
	imported := cmp.Or(s.imported, s.other)
	return imported != nil && (imported.Headless || in.ignoreEmpty || in.fromEndpoints && imported.LacksAddress())
}

// drop removes a service without objects. The lock is held.
func (in *inputs) drop(key string) {
	if s := in.services[key]; s != nil && s.imported == nil && s.other == nil && len(s.slices) == 0 {
		delete(in.services, key)
		if delete(in.members[s.namespace], key); len(in.members[s.namespace]) == 0 {
			delete(in.members, s.namespace)
		}
	}
}

// touch notes that a service changed. The lock is held.
func (in *inputs) touch(key string, cause time.Time) {
	in.drop(key)
	causes := in.dirty[key]
	if in.opened && !cause.IsZero() {
		causes = append(causes, cause)
	}
	in.dirty[key] = causes
	in.signal()
}

// signal wakes the publisher once everything was listed. The lock is held.
func (in *inputs) signal() {
	if !in.opened {
		return
	}
	select {
	case in.changed <- struct{}{}:
	default:
	}
}

// open lets changes be published from now on.
func (in *inputs) open() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.opened = true
	in.signal()
}

// setIgnoreEmpty sets whether a view leaves out ClusterSetIP services without endpoints.
func (in *inputs) setIgnoreEmpty(ignore bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ignoreEmpty = ignore
}

// setImport puts an import in the place of that object's last state; nil removes it. It reports whether that changed
// anything. The lock is held.
func (in *inputs) setImport(resource Resource, object, namespace string, imported *object.Import) (changed bool) {
	before := in.imports[resource][object]
	if before != nil && imported != nil && before.Equal(imported) {
		return false
	}
	if before != nil {
		in.observer.Objects(resource, -1)
		delete(in.imports[resource], object)
		in.setDependent(resource, namespace, before, false)
		if s := in.services[before.Key]; s != nil {
			*s.of(resource) = nil
		}
		if imported == nil || imported.Key != before.Key {
			in.touch(before.Key, time.Time{})
		}
	}
	if imported != nil {
		in.observer.Objects(resource, +1)
		in.imports[resource][object] = imported
		in.setDependent(resource, namespace, imported, true)
		*in.service(imported.Key, namespace).of(resource) = imported
		in.touch(imported.Key, time.Time{})
	}
	return true
}

// setSlice puts a slice in the place of that object's last state; nil removes it. The key is that of the service it
// belongs to now, cause is when what changed it happened. The lock is held.
func (in *inputs) setSlice(resource Resource, object, key, namespace string, slice *object.Endpoints, cause time.Time) {
	before, had := in.slices[resource][object]
	stamp := cause.UnixNano()
	if had && slice != nil && before.key == key && before.endpoints.Equal(slice) {
		before.cause = stamp // what it caused is nothing that DNS shows
		in.slices[resource][object] = before
		return
	}
	if before.cause == stamp {
		cause = time.Time{} // something else changed the slice
	}
	if had && (slice == nil || key != before.key) {
		in.observer.Objects(resource, -1)
		delete(in.slices[resource], object)
		in.services[before.key].replace(before.endpoints, nil)
		in.touchSlices(before.key, cause)
		had, before.endpoints = false, nil
	}
	if slice != nil {
		if !had {
			in.observer.Objects(resource, +1)
		}
		in.service(key, namespace).replace(before.endpoints, slice)
		in.slices[resource][object] = held{slice, key, stamp}
		in.touchSlices(key, cause)
	}
}

// replace puts a slice in the place of its last state. Either may be nil. Record sets keep the list of slices, so only
// what is behind its end is written.
func (s *service) replace(before, after *object.Endpoints) {
	if before == nil {
		for _, sibling := range s.slices[max(0, len(s.slices)-maxSiblings):] {
			after.Share(sibling)
		}
		s.slices = append(s.slices, after)
		return
	}
	i := slices.Index(s.slices, before)
	s.slices = slices.Clone(s.slices)
	if after == nil {
		last := len(s.slices) - 1
		s.slices[i] = s.slices[last]
		s.slices[last] = nil
		s.slices = s.slices[:last:last]
		return
	}
	after.Share(before)
	s.slices[i] = after
}

// maxSiblings is with how many slices of its service a new slice may share strings.
const maxSiblings = 8

// selectNamespace notes whether a namespace has the labels that select it. The lock is held.
func (in *inputs) selectNamespace(namespace string, selected bool) {
	if _, was := in.selected[namespace]; was == selected {
		return
	}
	if selected {
		in.selected[namespace] = struct{}{}
		in.observer.Objects(Namespaces, +1)
	} else {
		delete(in.selected, namespace)
		in.observer.Objects(Namespaces, -1)
	}
	for key := range in.members[namespace] {
		in.touch(key, time.Time{})
	}
}

// pause is how long a service that was published waits with its next change: it is built as a whole each time.
const pause = 100 * time.Millisecond

// take returns the services that changed and need not wait, and in how long to take the next, or 0 if none waits.
func (in *inputs) take(now time.Time) (changed []input, wait time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	changed = make([]input, 0, len(in.dirty))
	waiting := make(map[string][]time.Time)
	for key, causes := range in.dirty {
		s := in.services[key]
		if s != nil && now.Sub(s.taken) < in.pause {
			waiting[key] = causes
			wait = max(wait, now.Sub(s.taken))
			continue
		}
		if s != nil {
			s.taken = now
		}
		changed = append(changed, in.copy(key, causes))
	}
	in.dirty = waiting
	if len(waiting) > 0 {
		wait = in.pause - wait
	}
	return changed, wait
}

// all returns all services.
func (in *inputs) all() []input {
	in.mu.Lock()
	defer in.mu.Unlock()
	every := make([]input, 0, len(in.services))
	for key := range in.services {
		every = append(every, in.copy(key, nil))
	}
	return every
}

// copy returns what a service is built from. The lock is held.
func (in *inputs) copy(key string, causes []time.Time) input {
	s := in.services[key]
	if s == nil {
		return input{key: key}
	}
	imported := cmp.Or(s.imported, s.other)
	if imported == nil {
		return input{key: key}
	}
	if in.selecting {
		if _, ok := in.selected[s.namespace]; !ok {
			return input{key: key}
		}
	}
	imported = in.fill(s.namespace, imported, s.slices)
	return input{key: key, imported: imported, slices: in.endpoints(s, imported), causes: causes}
}

// forget tells the observer that nothing is held any more.
func (in *inputs) forget() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for resource, imports := range in.imports {
		in.observer.Objects(resource, -len(imports))
	}
	in.observer.Objects(Services, -len(in.derived))
	for resource, slices := range in.slices {
		in.observer.Objects(resource, -len(slices))
	}
	in.observer.Objects(Namespaces, -len(in.selected))
	in.observer.Objects(Nodes, -len(in.nodes))
}
