// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// MirroredEndpointSlices are the EndpointSlices that Kubernetes makes of Endpoints objects, unless they are among
// EndpointSlices. They are watched if GKEServiceImports and endpoints are: behind a headless import of GKE is an
// Endpoints object. No label of its slices names the import, which names its Service instead.
const MirroredEndpointSlices Resource = "endpointslices.mirrored"

// mirrors reports whether the slices of Endpoints objects are watched.
func (o Options) mirrors() bool {
	return !o.NoEndpoints && slices.Contains(o.importResources(), GKEServiceImports)
}

// mirroredKey is the key of the slices of a Service in the inputs. Only such keys have a single slash: those of imported
// services have none, and those of refused imports have two.
func mirroredKey(namespace, service string) string { return namespace + "/" + service }

// mirroredKeyOf is that of the Service that a mirrored slice belongs to.
func mirroredKeyOf(slice *discoveryv1.EndpointSlice) string {
	return mirroredKey(slice.Namespace, slice.Labels[discoveryv1.LabelServiceName])
}

// touchSlices notes that the slices of a service changed, or those of a Service that imports name. If no answer depends
// on them, nothing is published. The lock is held.
func (in *inputs) touchSlices(key string, cause time.Time) {
	if in.answersSlices(key) {
		in.touch(key, cause)
	} else {
		in.drop(key)
	}
	for _, naming := range in.dependents[key] {
		in.touch(naming, cause)
	}
}

// endpoints returns the slices of a service: those with its label, and those of the Services that its import names. The
// list is never changed. The lock is held.
func (in *inputs) endpoints(s *service, imported *object.Import) []*object.Endpoints {
	all := slices.Clip(s.slices)
	if imported != s.other {
		return all
	}
	for _, name := range imported.MirroredServices() {
		if mirrored := in.services[mirroredKey(s.namespace, name)]; mirrored != nil {
			all = append(all, mirrored.slices...)
		}
	}
	return all
}
