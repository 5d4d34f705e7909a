// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"net/netip"
	"slices"
	"time"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// fallbacks are what stands in for the addresses that imports are wanting. The lock of the inputs guards it.
type fallbacks struct {
	fromServices, fromEndpoints bool
	// derived are the addresses of Services, by namespace/name.
	derived map[string][]netip.Addr
	// wanted are the keys of the services whose imports are wanting a Service's addresses, or its mirrored slices, by its
	// namespace/name.
	wanted map[string][]string
}

func newFallbacks(options Options) fallbacks {
	return fallbacks{
		fromServices:  options.FallbackServices,
		fromEndpoints: options.FallbackEndpoints,
		derived:       make(map[string][]netip.Addr),
		wanted:        make(map[string][]string),
	}
}

// behind are the Services that an import is wanting the addresses or the mirrored slices of.
func (f *fallbacks) behind(resource Resource, imported *object.Import) []string {
	switch {
	case resource == GKEServiceImports && imported.Headless:
		return imported.MirroredServices()
	case f.fromServices:
		return imported.DerivedServices()
	}
	return nil
}

// want notes the Services that an import is wanting something of.
func (f *fallbacks) want(resource Resource, namespace string, imported *object.Import) {
	for _, name := range f.behind(resource, imported) {
		object := namespace + "/" + name
		f.wanted[object] = append(f.wanted[object], imported.Key)
	}
}

// unwant undoes want.
func (f *fallbacks) unwant(resource Resource, namespace string, imported *object.Import) {
	for _, name := range f.behind(resource, imported) {
		object := namespace + "/" + name
		keys := f.wanted[object]
		if i := slices.Index(keys, imported.Key); i >= 0 {
			keys = slices.Delete(keys, i, i+1)
		}
		if len(keys) == 0 {
			delete(f.wanted, object)
		} else {
			f.wanted[object] = keys
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
	for _, key := range in.wanted[object] {
		in.touch(key, time.Time{})
	}
}

// fill is the import with addresses in the place of those that it is wanting, as far as the operator asks for that and
// there are some.
func (f *fallbacks) fill(namespace string, imported *object.Import, slices []*object.Endpoints) *object.Import {
	if !imported.LacksAddress() {
		return imported
	}
	if f.fromServices {
		imported = imported.WithServices(func(name string) []netip.Addr { return f.derived[namespace+"/"+name] })
	}
	if f.fromEndpoints {
		imported = imported.WithEndpoints(slices)
	}
	return imported
}
