// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// endpointSlices returns the slices of all contributions, one for each slice of a view. A slice has the ports of the
// import that its endpoints serve. A slice that serves none has no ports: kube-proxy sends it no traffic, a headless name
// has its addresses but no SRV records, and its snapshot remains readable. Slices of absent contributions have a snapshot
// and no endpoints.
func endpointSlices(observed Observed, agreed Decision, contributions []Contribution) []*discoveryv1.EndpointSlice {
	covered := coverage(contributions, agreed.Placement)
	var result []*discoveryv1.EndpointSlice
	for _, contribution := range contributions {
		view := contribution.View
		for i := range view.Slices {
			slice := &view.Slices[i]
			endpoints, demoted := covered.place(agreed, contribution, slice)
			object := endpointSlice(observed, view, slice, export.LabelService)
			if !view.Absent() {
				labelForKubeProxy(observed, agreed, object.Labels)
			}
			object.Annotations = view.Annotations(slice, demoted)
			object.Endpoints, object.Ports = endpoints, slicePorts(agreed, slice)
			agreed.Placement.Decorate(object, contribution, slice, demoted)
			result = append(result, object)
		}
		result = append(result, exposedSlices(observed, agreed, view)...)
	}
	return result
}

// exposedSlices returns the slices of a view for clusters of other networks. Only their ports depend on the merge.
func exposedSlices(observed Observed, agreed Decision, view *export.View) (result []*discoveryv1.EndpointSlice) {
	for i := range view.Exposed {
		slice := &view.Exposed[i]
		object := endpointSlice(observed, view, slice, export.LabelExposed)
		object.Annotations = view.Annotations(slice, nil)
		object.Endpoints, object.Ports = slice.Endpoints, slicePorts(agreed, slice)
		result = append(result, object)
	}
	return result
}

// endpointSlice returns the object of a slice, whose label names the service. Annotations, endpoints, ports and the derived Service
// are not set yet.
func endpointSlice(observed Observed, view *export.View, slice *export.Slice, label string) *discoveryv1.EndpointSlice {
	object := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: observed.Service.Namespace,
			Name:      sliceName(observed, view, slice),
			Labels: map[string]string{
				label:                         observed.Service.Name,
				export.LabelSourceCluster:     view.Cluster,
				export.LabelKubernetesService: noService(observed, view.Cluster),
			},
			OwnerReferences: sliceOwner(observed, view),
		},
		AddressType: slice.AddressType,
	}
	export.Mark(object)
	return object
}

// slicePorts returns the import's ports that the endpoints of a slice serve, in the order of the import.
func slicePorts(agreed Decision, slice *export.Slice) []discoveryv1.EndpointPort {
	ports := make([]discoveryv1.EndpointPort, 0, len(slice.Targets))
	for _, port := range agreed.ports {
		at := slices.IndexFunc(slice.Targets, func(t export.Target) bool { return t.Protocol == port.Protocol && t.Number == port.Port })
		if at >= 0 {
			ports = append(ports, discoveryv1.EndpointPort{
				Name: &port.Name, Protocol: &port.Protocol, Port: &slice.Targets[at].Port, AppProtocol: port.AppProtocol,
			})
		}
	}
	return ports
}

// sliceName returns the name of a slice in this cluster. The name of a copy cannot be chosen by its source.
func sliceName(observed Observed, view *export.View, slice *export.Slice) string {
	if view.Cluster == observed.Cluster {
		return slice.Name
	}
	return export.SliceName(view.Cluster, observed.Service, slice.Name, slice.AddressType)
}

// noService returns a value of the label that is the name of no Service, since it has capitals. Without the label, the
// plugin kubernetes of CoreDNS cannot answer reverse lookups of the addresses: their names have an empty label. With it,
// the answer for a local endpoint is the name of the exported Service, as DNS ignores case; the answer for an endpoint of
// another cluster is a name that does not exist, as it has one label too many.
func noService(observed Observed, cluster string) string {
	service := strings.ToUpper(observed.Service.Name)
	if cluster == observed.Cluster && service != observed.Service.Name {
		return service
	}
	value := strings.ToUpper(cluster) + "." + service
	return strings.TrimRight(value[:min(len(value), validation.LabelValueMaxLength)], "-.")
}

// labelForKubeProxy adds the label with which kube-proxy finds or ignores a slice. If the name of the derived Service is
// taken, no slice gets it: the other Service would serve endpoints of this import.
func labelForKubeProxy(observed Observed, agreed Decision, labels map[string]string) {
	switch {
	case agreed.spec.Type == v1beta1.Headless:
		labels[export.LabelHeadless] = ""
	case !foreignService(observed):
		labels[export.LabelKubernetesService] = export.DerivedServiceName(observed.Service)
	}
}

func sliceOwner(observed Observed, view *export.View) []metav1.OwnerReference {
	switch {
	case view.Cluster != observed.Cluster:
		return []metav1.OwnerReference{importOwner(observed)}
	case observed.ServiceExport != nil:
		return []metav1.OwnerReference{exportOwner(observed)}
	}
	return nil
}

func exportOwner(observed Observed) metav1.OwnerReference {
	return owner(observed, v1beta1.ServiceExportKindName, observed.ServiceExport.UID)
}

func importOwner(observed Observed) metav1.OwnerReference {
	return owner(observed, v1beta1.ServiceImportKindName, ptr.Deref(observed.ServiceImport, v1beta1.ServiceImport{}).UID)
}

func owner(observed Observed, kind string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: observed.APIVersion,
		Kind:       kind,
		Name:       observed.Service.Name,
		UID:        uid,
		Controller: ptr.To(true),
	}
}
