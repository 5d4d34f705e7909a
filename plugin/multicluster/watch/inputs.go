// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// inputs holds the objects that services are built from, and collects the keys of changed services.
type inputs struct {
	observer Observer
	options  Options
	// ignoreEmpty tells that ClusterSetIP services without endpoints are left out.
	ignoreEmpty bool
	// changed has a value in it while there are changes to take. Its size of one makes many signals one.
	changed chan struct{}

	mu          sync.Mutex
	objects     map[Resource]map[string]*item  // by namespace/name
	services    map[string]*service            // by the keys of the objects that belong to them, see item
	byNamespace map[string]map[string]struct{} // the keys in services
	moved       bool                           // a node changed
	dirty       map[string][]time.Time         // by key: what the changes' causes were
	opened      bool                           // everything was listed once
}

// service has the objects of one service, or the mirrored slices of a Service.
type service struct {
	imported  *object.Import // of ServiceImports
	other     *object.Import // of GKEServiceImports: counts if there is none of the former
	namespace string
	slices    []*object.Endpoints
	taken     time.Time // when it was last taken to be published
}

// current is the import that counts, or nil.
func (s *service) current() *object.Import { return cmp.Or(s.imported, s.other) }

// input is a copy of what a service is built from. The import is nil if there is none to serve.
type input struct {
	key      string
	imported *object.Import
	slices   []*object.Endpoints
	causes   []time.Time
}

func newInputs(options Options, ignoreEmpty bool, observer Observer) *inputs {
	return &inputs{
		observer:    observer,
		options:     options,
		ignoreEmpty: ignoreEmpty,
		changed:     make(chan struct{}, 1),
		objects:     make(map[Resource]map[string]*item),
		services:    make(map[string]*service),
		byNamespace: make(map[string]map[string]struct{}),
		dirty:       make(map[string][]time.Time),
	}
}

// set puts an object in the place of its last state; nil removes it. It reports whether that changed anything. The lock
// is held.
func (in *inputs) set(resource Resource, id string, after *item) (changed bool) {
	objects := in.objects[resource]
	if objects == nil {
		objects = make(map[string]*item)
		in.objects[resource] = objects
	}
	before := objects[id]
	if before.equal(after) {
		if before != nil {
			before.cause = after.cause // what it caused is nothing that DNS shows
		}
		return false
	}
	count := len(objects)
	var cause time.Time
	if after == nil {
		delete(objects, id)
	} else {
		objects[id] = after
		if before == nil || !before.cause.Equal(after.cause) { // else something else changed the slice
			cause = after.cause
		}
	}
	in.observer.Objects(resource, len(objects)-count)
	if before != nil && (after == nil || before.key != after.key) {
		in.replace(resource, before.key, before, nil, cause)
		before = nil
	}
	if after != nil {
		in.replace(resource, after.key, before, after, cause)
	}
	return true
}

// replace replaces one state of an object by the next in what belongs to the key. Either may be nil. The lock is held.
func (in *inputs) replace(resource Resource, key string, before, after *item, cause time.Time) {
	of, imported := cmp.Or(after, before), (*object.Import)(nil)
	if after != nil {
		imported = after.imported
	}
	switch resource {
	case ServiceImports:
		in.service(key, of.namespace).imported = imported
		in.touch(key, cause)
	case GKEServiceImports:
		in.service(key, of.namespace).other = imported
		in.touch(key, cause)
	case EndpointSlices, MirroredEndpointSlices:
		in.service(key, of.namespace).replace(before, after)
		if in.answersSlices(key) {
			in.touch(key, cause)
		} else {
			in.drop(key)
		}
		if resource == MirroredEndpointSlices {
			in.touchNaming(key, cause)
		}
	case Services:
		in.touchNaming(key, cause)
	case Namespaces:
		for each := range in.byNamespace[of.name] {
			in.touch(each, cause)
		}
	case Nodes:
		in.moved = true
		in.signal()
	}
}

// service returns the objects of a service. The lock is held.
func (in *inputs) service(key, namespace string) *service {
	s := in.services[key]
	if s == nil {
		s = &service{namespace: namespace}
		in.services[key] = s
		if in.byNamespace[namespace] == nil {
			in.byNamespace[namespace] = make(map[string]struct{})
		}
		in.byNamespace[namespace][key] = struct{}{}
	}
	return s
}

// replace replaces one state of a slice by the next. Either may be nil.
func (s *service) replace(before, after *item) {
	if before != nil {
		at := slices.Index(s.slices, before.endpoints)
		s.slices = slices.Delete(s.slices, at, at+1)
	}
	if after != nil {
		s.slices = append(s.slices, after.endpoints)
	}
}

// answersSlices reports whether answers for a service depend on its slices: it is headless, or services without
// endpoints are left out, or its import lacks addresses that its endpoints stand in for. The lock is held.
func (in *inputs) answersSlices(key string) bool {
	imported := in.services[key].current()
	return imported != nil &&
		(imported.Headless || in.ignoreEmpty || in.options.FallbackEndpoints && imported.LacksAddress())
}

// drop removes a service without objects. The lock is held.
func (in *inputs) drop(key string) {
	if s := in.services[key]; s != nil && s.current() == nil && len(s.slices) == 0 {
		delete(in.services, key)
		if delete(in.byNamespace[s.namespace], key); len(in.byNamespace[s.namespace]) == 0 {
			delete(in.byNamespace, s.namespace)
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

// touchNaming notes that a Service changed, or its mirrored slices, for the services whose imports name it. The lock is
// held.
func (in *inputs) touchNaming(key string, cause time.Time) {
	namespace, name, _ := strings.Cut(key, "/")
	if !in.opened {
		return // then all are published
	}
	for each := range in.byNamespace[namespace] {
		if slices.Contains(in.names(in.services[each]), name) {
			in.touch(each, cause)
		}
	}
}

// names are the Services whose addresses or mirrored slices the import of a service needs.
func (in *inputs) names(s *service) []string {
	imported := s.current()
	if imported == nil || !in.options.FallbackServices && (imported != s.other || !imported.Headless && !in.ignoreEmpty) {
		return nil // no answer depends on them
	}
	return imported.DerivedServices()
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
		if s != nil && now.Sub(s.taken) < pause {
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
		wait = pause - wait
	}
	return changed, wait
}

// copy returns what a service is built from. The lock is held.
func (in *inputs) copy(key string, causes []time.Time) input {
	s := in.services[key]
	if s == nil || s.current() == nil ||
		in.options.NamespaceLabels != "" && in.objects[Namespaces][objectID("", s.namespace)] == nil {
		return input{key: key}
	}
	imported, endpoints := s.current(), slices.Clone(s.slices)
	if in.options.FallbackServices {
		imported = imported.WithServices(func(name string) []netip.Addr {
			if known := in.objects[Services][objectID(s.namespace, name)]; known != nil {
				return known.addrs
			}
			return nil
		})
	}
	if in.options.FallbackEndpoints {
		imported = imported.WithEndpoints(endpoints)
	}
	if s.imported == nil {
		for _, name := range s.other.DerivedServices() {
			if mirrored := in.services[objectID(s.namespace, name)]; mirrored != nil {
				endpoints = append(endpoints, mirrored.slices...)
			}
		}
	}
	return input{key: key, imported: imported, slices: endpoints, causes: causes}
}

// takeNodes returns all nodes if one changed since the last call.
func (in *inputs) takeNodes() (nodes []object.Node, moved bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	moved, in.moved = in.moved, false
	if moved {
		for _, i := range in.objects[Nodes] {
			nodes = append(nodes, *i.node)
		}
	}
	return nodes, moved
}

// forget tells the observer that nothing is held any more.
func (in *inputs) forget() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for resource, objects := range in.objects {
		in.observer.Objects(resource, -len(objects))
	}
}
