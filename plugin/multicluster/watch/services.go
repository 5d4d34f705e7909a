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

// This file holds the objects of each service, and the set of services that changed.

// service has the objects with one key: of a service, or the mirrored slices of a Service (see item). It is deleted
// after the publisher has seen it empty.
type service struct {
	key, namespace string
	imported       *record.Import // of ServiceImports
	other          *record.Import // of GKEServiceImports: used if imported is nil
	slices         []*record.Endpoints
	built          time.Time // when it was built last
}

// current returns the import that takes precedence, or nil.
func (of *service) current() *record.Import { return cmp.Or(of.imported, of.other) }

// empty reports whether it has no objects.
func (of *service) empty() bool { return of.current() == nil && len(of.slices) == 0 }

// set replaces the last state of an object; nil removes it. It reports whether what DNS needs changed. The caller holds
// the lock.
func (s *Source) set(resource Resource, id string, after *item) (changed bool) {
	objects := s.objects[resource]
	if objects == nil {
		objects = make(map[string]*item)
		s.objects[resource] = objects
	}
	before := objects[id]
	if before.equal(after) {
		if before != nil {
			before.cause = after.cause // the change behind this cause has no effect on DNS
		}
		return false
	}
	var cause time.Time
	if after == nil {
		delete(objects, id)
	} else {
		objects[id] = after
		if before == nil || !before.cause.Equal(after.cause) { // an unchanged cause belongs to an earlier change
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

// replace replaces one state of an object by the next in the services that it affects. Both have the same key; either
// may be nil. The caller holds the lock.
func (s *Source) replace(resource Resource, before, after *item, cause time.Time) {
	changed := cmp.Or(after, before)
	key := changed.key
	imported, _ := cmp.Or(after, new(item)).content.(*record.Import)
	switch resource {
	case ServiceImports:
		of := s.service(key, changed.namespace)
		of.imported = imported
		s.touch(of, cause)
	case GKEServiceImports:
		of := s.service(key, changed.namespace)
		of.other = imported
		s.touch(of, cause)
	case EndpointSlices, MirroredEndpointSlices:
		of := s.service(key, changed.namespace)
		of.replace(before, after)
		s.touch(of, cause)
		if resource == MirroredEndpointSlices {
			s.touchNaming(key, cause)
		}
	case Services:
		s.touchNaming(key, cause)
	case Namespaces:
		for _, of := range s.services[changed.name] {
			s.touch(of, cause)
		}
	case Nodes:
		s.moved = true
		s.signal()
	}
}

// service returns the objects of a service, and creates the entry if necessary. The caller holds the lock.
func (s *Source) service(key, namespace string) *service {
	if s.services[namespace] == nil {
		s.services[namespace] = make(map[string]*service)
	}
	of := s.services[namespace][key]
	if of == nil {
		of = &service{key: key, namespace: namespace}
		s.services[namespace][key] = of
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

// touch marks a service as changed. The caller holds the lock.
func (s *Source) touch(of *service, cause time.Time) {
	causes := s.dirty[of]
	if s.listed() && !cause.IsZero() {
		causes = append(causes, cause)
	}
	s.dirty[of] = causes
	s.signal()
}

// touchNaming marks the services as changed whose imports name a Service that changed, or whose mirrored slices did.
// The caller holds the lock.
func (s *Source) touchNaming(key string, cause time.Time) {
	namespace, name, _ := strings.Cut(key, "/")
	if !s.listed() {
		return // the first publication includes all services
	}
	for _, of := range s.services[namespace] {
		if imported := of.current(); imported != nil && slices.Contains(imported.DerivedServices(), name) {
			s.touch(of, cause)
		}
	}
}

// pause is the shortest time between two builds of a service, because each build is complete.
const pause = 100 * time.Millisecond

// take builds the changed services that need not wait, by key; nil means nothing to serve. It returns the causes of all
// changes, even of services that wait. The caller holds the lock.
func (s *Source) take(now time.Time) (changes map[string]*record.Service, causes map[*service][]time.Time) {
	changes, causes = make(map[string]*record.Service, len(s.dirty)), s.dirty
	s.dirty = make(map[*service][]time.Time)
	for of := range causes {
		if of.current() != nil && now.Sub(of.built) < pause {
			s.dirty[of] = causes[of]
			continue
		}
		of.built = now
		changes[of.key] = s.build(of)
		if of.empty() {
			if delete(s.services[of.namespace], of.key); len(s.services[of.namespace]) == 0 {
				delete(s.services, of.namespace)
			}
		}
	}
	return changes, causes
}

// build builds a service, or returns nil if there is nothing to serve. The caller holds the lock.
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
			if mirrored := s.services[of.namespace][objectID(of.namespace, name)]; mirrored != nil {
				endpoints = append(endpoints, mirrored.slices...)
			}
		}
	}
	return record.Build(s.config, imported, endpoints)
}
