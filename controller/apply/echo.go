// SPDX-License-Identifier: Apache-2.0

package apply

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/packed"
)

// An echo is an object as it was written. Many wait for their events during an import, so that slices are packed.
type echo struct {
	kind, name, version string
	object              metav1.Object // unless it is a slice
	slice               *packed.Slice
}

func newEcho(written metav1.Object) echo {
	e := echo{kind: kindOf(written), name: written.GetName(), version: written.GetResourceVersion()}
	if slice, ok := written.(*discoveryv1.EndpointSlice); ok {
		e.slice = packed.New(slice)
	} else {
		e.object = written
	}
	return e
}

// is reports whether an object that a cache shows is the one that was written.
func (e echo) is(shown metav1.Object) bool {
	if e.kind != kindOf(shown) || e.name != shown.GetName() || e.version != shown.GetResourceVersion() {
		return false
	}
	if slice, ok := shown.(*discoveryv1.EndpointSlice); ok && e.slice != nil {
		return e.slice.Equal(packed.New(slice)) || same(e.slice.Open(), slice)
	}
	return same(e.object, shown)
}
