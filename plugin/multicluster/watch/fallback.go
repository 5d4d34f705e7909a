// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"net/netip"
	"slices"
	"time"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// fallbacks replace the addresses that imports lack. The lock of the inputs guards it.
type fallbacks struct {
	fromServices, fromEndpoints bool
	// derived are the addresses of Services, by namespace/name.
	derived map[string][]netip.Addr
	// dependents are the keys of the imported services that need the addresses of a Service or its mirrored slices, by
	// namespace/name of the Service.
	dependents map[string][]string
}

func newFallbacks(options Options) fallbacks {
	return fallbacks{
		fromServices:  options.FallbackServices,
		fromEndpoints: options.FallbackEndpoints,
		derived:       make(map[string][]netip.Addr),
		dependents:    make(map[string][]string),
	}
}

// dependsOn are the Services whose addresses or mirrored slices an import needs.
func (f *fallbacks) dependsOn(resource Resource, imported *object.Import) []string {
	switch {
	case resource == GKEServiceImports && imported.Headless:
		return imported.MirroredServices()
	case f.fromServices:
		return imported.DerivedServices()
	}
	return nil
}

// setDependent notes that an import needs Services, or no longer does.
func (f *fallbacks) setDependent(resource Resource, namespace string, imported *object.Import, depends bool) {
	for _, name := range f.dependsOn(resource, imported) {
		service := namespace + "/" + name
		keys := f.dependents[service]
		if depends {
			keys = append(keys, imported.Key)
		} else if i := slices.Index(keys, imported.Key); i >= 0 {
			keys = slices.Delete(keys, i, i+1)
		}
		f.dependents[service] = keys
		if len(keys) == 0 {
			delete(f.dependents, service)
		}
	}
}

// setService puts the addresses of a Service in the place of its last ones. The lock is held.
func (in *inputs) setService(object string, addrs []netip.Addr) {
	before := in.derived[object]
	if slices.Equal(before, addrs) {
		return
	}
	if len(before) > 0 {
		in.observer.Objects(Services, -1)
		delete(in.derived, object)
	}
	if len(addrs) > 0 {
		in.observer.Objects(Services, +1)
		in.derived[object] = addrs
	}
	for _, key := range in.dependents[object] {
		in.touch(key, time.Time{})
	}
}

// fill is the import with the addresses that stand in for those it lacks, if the operator configured that and there are
// some.
func (f *fallbacks) fill(namespace string, imported *object.Import, endpoints []*object.Endpoints) *object.Import {
	if !imported.LacksAddress() {
		return imported
	}
	if f.fromServices {
		imported = imported.WithServices(func(name string) []netip.Addr { return f.derived[namespace+"/"+name] })
	}
	if f.fromEndpoints {
		imported = imported.WithEndpoints(endpoints)
	}
	return imported
}
