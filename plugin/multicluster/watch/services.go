// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// This file has what services are built from, by service, and which of them changed.

// service has the objects of one service, or the mirrored slices of a Service.
type service struct {
	imported  *record.Import // of ServiceImports
	other     *record.Import // of GKEServiceImports: counts if there is none of the former
	namespace string
	slices    []*record.Endpoints
	built     time.Time // when it was built last
}

// current is the import that counts, or nil.
func (of *service) current() *record.Import { return cmp.Or(of.imported, of.other) }

// set puts an object in the place of its last state; nil removes it. It reports whether that changed anything. The lock
// is held.
func (s *Source) set(resource Resource, id string, after *item) (changed bool) {
	objects := s.objects[resource]
	if objects == nil {
		objects = make(map[string]*item)
		s.objects[resource] = objects
	}
	before := objects[id]
	if before.equal(after) {
		if before != nil {
			before.cause = after.cause // what it caused is nothing that DNS shows
		}
		return false
	}
	var cause time.Time
	if after == nil {
		delete(objects, id)
	} else {
		objects[id] = after
		if before == nil || !before.cause.Equal(after.cause) { // else something else changed the slice
			cause = after.cause
		}
	}
	if before != nil && (after == nil || before.key != after.key) {
		s.replace(resource, before, nil, cause)
		before = nil
	}
	if after != nil {
		s.replace(resource, before, after, cause)
	}
	return true
}

// replace replaces one state of an object by the next in what belongs to its key, which is that of both. Either may be nil.
// The lock is held.
func (s *Source) replace(resource Resource, before, after *item, cause time.Time) {
	changed := cmp.Or(after, before)
	key := changed.key
	imported, _ := cmp.Or(after, new(item)).content.(*record.Import)
	switch resource {
	case ServiceImports:
		s.service(key, changed.namespace).imported = imported
		s.touch(key, cause)
	case GKEServiceImports:
		s.service(key, changed.namespace).other = imported
		s.touch(key, cause)
	case EndpointSlices, MirroredEndpointSlices:
		s.service(key, changed.namespace).replace(before, after)
		if s.answersSlices(key) {
			s.touch(key, cause)
		} else {
			s.drop(key)
		}
		if resource == MirroredEndpointSlices {
			s.touchNaming(key, cause)
		}
	case Services:
		s.touchNaming(key, cause)
	case Namespaces:
		for each := range s.byNamespace[changed.name] {
			s.touch(each, cause)
		}
	case Nodes:
		s.moved = true
		s.signal()
	}
}

// service returns the objects of a service. The lock is held.
func (s *Source) service(key, namespace string) *service {
	of := s.services[key]
	if of == nil {
		of = &service{namespace: namespace}
		s.services[key] = of
		if s.byNamespace[namespace] == nil {
			s.byNamespace[namespace] = make(map[string]struct{})
		}
		s.byNamespace[namespace][key] = struct{}{}
	}
	return of
}

// replace replaces one state of a slice by the next. Either may be nil.
func (of *service) replace(before, after *item) {
	if before != nil {
		at := slices.Index(of.slices, before.content.(*record.Endpoints))
		of.slices = slices.Delete(of.slices, at, at+1)
	}
	if after != nil {
		of.slices = append(of.slices, after.content.(*record.Endpoints))
	}
}

// answersSlices reports whether answers for a service depend on its slices: it is headless, or services without
// endpoints are left out, or its import lacks addresses that its endpoints stand in for. The lock is held.
func (s *Source) answersSlices(key string) bool {
	imported := s.services[key].current()
	return imported != nil &&
		(imported.Headless || s.config.IgnoreEmpty || s.options.FallbackEndpoints && imported.LacksAddress())
}

// drop removes a service without objects. The lock is held.
func (s *Source) drop(key string) {
	if of := s.services[key]; of != nil && of.current() == nil && len(of.slices) == 0 {
		delete(s.services, key)
		if delete(s.byNamespace[of.namespace], key); len(s.byNamespace[of.namespace]) == 0 {
			delete(s.byNamespace, of.namespace)
		}
	}
}

// touch notes that a service changed. The lock is held.
func (s *Source) touch(key string, cause time.Time) {
	s.drop(key)
	causes := s.dirty[key]
	if s.listed() && !cause.IsZero() {
		causes = append(causes, cause)
	}
	s.dirty[key] = causes
	s.signal()
}

// touchNaming notes that a Service changed, or its mirrored slices, for the services whose imports name it. The lock is
// held.
func (s *Source) touchNaming(key string, cause time.Time) {
	namespace, name, _ := strings.Cut(key, "/")
	if !s.listed() {
		return // then all are published
	}
	for each := range s.byNamespace[namespace] {
		if slices.Contains(s.names(s.services[each]), name) {
			s.touch(each, cause)
		}
	}
}

// names are the Services whose addresses or mirrored slices the import of a service needs.
func (s *Source) names(of *service) []string {
	imported := of.current()
	if imported == nil || !s.options.FallbackServices && (imported != of.other || !imported.Headless && !s.config.IgnoreEmpty) {
		return nil // no answer depends on them
	}
	return imported.DerivedServices()
}

// pause is how long a service that was published waits with its next change: it is built as a whole each time.
const pause = 100 * time.Millisecond

// take builds the services that changed and need not wait: by key, nil if there is none to serve. It returns what their
// changes' causes were, and in how long to take the next, or 0 if none waits. The lock is held.
func (s *Source) take(now time.Time) (
	changes map[string]*record.Service, causes map[string][]time.Time, wait time.Duration,
) {
	changes, causes = make(map[string]*record.Service, len(s.dirty)), s.dirty
	s.dirty = make(map[string][]time.Time)
	for key := range causes {
		of := s.services[key]
		switch {
		case of == nil:
			changes[key] = nil
		case now.Sub(of.built) < pause:
			s.dirty[key] = causes[key]
			wait = max(wait, now.Sub(of.built))
		default:
			of.built = now
			changes[key] = s.build(of)
		}
	}
	if len(s.dirty) > 0 {
		wait = pause - wait
	}
	return changes, causes, wait
}

// build builds a service, or returns nil if there is none to serve. The lock is held.
func (s *Source) build(of *service) *record.Service {
	imported, endpoints := of.current(), of.slices
	if imported == nil ||
		s.options.NamespaceLabels != "" && s.objects[Namespaces][objectID("", of.namespace)] == nil {
		return nil
	}
	if s.options.FallbackServices {
		imported = imported.WithServices(func(name string) []netip.Addr {
			addresses, _ := cmp.Or(s.objects[Services][objectID(of.namespace, name)], new(item)).content.([]netip.Addr)
			return addresses
		})
	}
	if s.options.FallbackEndpoints {
		imported = imported.WithEndpoints(endpoints)
	}
	if of.imported == nil {
		endpoints = slices.Clip(endpoints)
		for _, name := range of.other.DerivedServices() {
			if mirrored := s.services[objectID(of.namespace, name)]; mirrored != nil {
				endpoints = append(endpoints, mirrored.slices...)
			}
		}
	}
	return record.Build(s.config, imported, endpoints)
}
