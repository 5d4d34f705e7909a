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
func endpointSlices(observed Observed, agreed Decision, contributions []Contribution) (result []*discoveryv1.EndpointSlice) {
	covered := coverage(contributions, agreed.Placement)
	for _, contribution := range contributions {
		view := contribution.View
		for i := range view.Slices {
			slice := &view.Slices[i]
			endpoints, demoted := covered.place(agreed, contribution, slice)
			object := endpointSlice(observed, agreed, view, slice, export.LabelService, demoted)
			object.Endpoints = endpoints
			if !view.Absent() {
				labelForKubeProxy(observed, agreed, object.Labels)
			}
			agreed.Placement.Decorate(object, contribution, slice, demoted)
			result = append(result, object)
		}
		for i := range view.Exposed { // for clusters of other networks: only the ports depend on the merge
			result = append(result, endpointSlice(observed, agreed, view, &view.Exposed[i], export.LabelExposed, nil))
		}
	}
	return result
}

// endpointSlice returns the object of a slice, whose label names the service. It has the endpoints and the labels of a slice that
// kube-proxy ignores.
func endpointSlice(
	observed Observed, agreed Decision, view *export.View, slice *export.Slice, label string, demoted []int,
) *discoveryv1.EndpointSlice {
	object := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: observed.Service.Namespace,
			Name:      slice.Name,
			Labels: map[string]string{
				label:                         observed.Service.Name,
				export.LabelSourceCluster:     view.Cluster,
				export.LabelKubernetesService: noService(observed, view.Cluster),
			},
			Annotations: view.Annotations(slice, demoted),
		},
		AddressType: slice.AddressType,
		Endpoints:   slice.Endpoints,
		Ports:       slicePorts(agreed, slice),
	}
	export.Mark(object)
	switch {
	case view.Cluster != observed.Cluster: // the source of a copy cannot choose its name
		object.Name = export.SliceName(view.Cluster, observed.Service, slice.Name, slice.AddressType)
		object.OwnerReferences = []metav1.OwnerReference{importOwner(observed)}
	case observed.ServiceExport != nil:
		object.OwnerReferences = []metav1.OwnerReference{exportOwner(observed)}
	}
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
