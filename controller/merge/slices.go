// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
)

// endpointSlices are the slices of all contributions, one for each slice of a
// view, sorted by name.
//
// A slice has the ports of the import that its cluster's Service has too. One
// whose endpoints serve no port of the import stays, without ports: kube-proxy
// sends it nothing, a headless name still has its addresses but no SRV records
// of it, and its snapshot is still there for others to read. hints are nil where
// endpoints have none.
func endpointSlices(observed Observed, agreed decision, contributions []Contribution, hints *locality.Hints) []*discoveryv1.EndpointSlice {
	covered := coverage(contributions)
	var result []*discoveryv1.EndpointSlice
	for _, contribution := range contributions {
		view := contribution.View
		encoder := export.NewEncoder(view)
		for i := range view.Slices {
			slice := &view.Slices[i]
			ports := slicePorts(agreed, slice)
			endpoints := slice.Endpoints
			var demoted []int
			if contribution.Demote && covered.all(agreed, slice, ports) {
				endpoints, demoted = demote(endpoints)
			}
			endpoints = hints.Of(view.Cluster == observed.Cluster, slice, endpoints)
			result = append(result, &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{
					Namespace:       observed.Service.Namespace,
					Name:            sliceName(observed, view, slice),
					Labels:          sliceLabels(observed, agreed, view),
					Annotations:     encoder.Annotations(slice, demoted),
					OwnerReferences: sliceOwner(observed, view),
				},
				AddressType: slice.AddressType,
				Endpoints:   endpoints,
				Ports:       ports,
			})
		}
	}
	slices.SortFunc(result, func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	return result
}

// slicePorts are the import's ports that the endpoints of a slice serve.
func slicePorts(agreed decision, slice *export.Slice) []discoveryv1.EndpointPort {
	ports := make([]discoveryv1.EndpointPort, 0, len(slice.Targets))
	for _, port := range agreed.ports {
		i := slices.IndexFunc(slice.Targets, func(t export.Target) bool { return t.Protocol == port.Protocol && t.Number == port.Port })
		if i < 0 {
			continue
		}
		ports = append(ports, discoveryv1.EndpointPort{
			Name:        ptr.To(port.Name),
			Protocol:    ptr.To(port.Protocol),
			Port:        ptr.To(slice.Targets[i].Port),
			AppProtocol: port.AppProtocol,
		})
	}
	return ports
}

// sliceName is the name of a slice here. This cluster's own already have it;
// copies get one that their source cannot choose.
func sliceName(observed Observed, view *export.View, slice *export.Slice) string {
	if view.Cluster == observed.Cluster {
		return slice.Name
	}
	return export.SliceName(view.Cluster, observed.Service, slice.Name, slice.AddressType)
}

// sliceLabels are those of a slice. Where the name of the derived Service is
// another's, no slice says that it belongs to it: endpoints of ours would be
// served by a Service that is not.
func sliceLabels(observed Observed, agreed decision, view *export.View) map[string]string {
	labels := map[string]string{
		export.LabelService:        observed.Service.Name,
		export.LabelSourceCluster:  view.Cluster,
		export.LabelSliceManagedBy: export.Manager,
	}
	switch {
	case agreed.spec.Type == v1beta1.Headless:
		labels[export.LabelHeadless] = ""
	case !foreignService(observed):
		labels[export.LabelKubernetesService] = export.DerivedServiceName(observed.Service)
	}
	return labels
}

func sliceOwner(observed Observed, view *export.View) []metav1.OwnerReference {
	switch {
	case view.Cluster != observed.Cluster:
		return []metav1.OwnerReference{importOwner(observed)}
	case observed.ServiceExport != nil:
		return []metav1.OwnerReference{owner(observed, v1beta1.ServiceExportKindName, observed.ServiceExport.UID)}
	}
	return nil
}

func importOwner(observed Observed) metav1.OwnerReference {
	reference := owner(observed, v1beta1.ServiceImportKindName, "")
	if observed.ServiceImport != nil {
		reference.UID = observed.ServiceImport.UID
	}
	return reference
}

func owner(observed Observed, kind string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: cmp.Or(observed.APIVersion, v1beta1.GroupVersion.String()),
		Kind:       kind,
		Name:       observed.Service.Name,
		UID:        uid,
		Controller: ptr.To(true),
	}
}

// SetImportUID sets the UID of a ServiceImport that was just created in the
// owner references of all objects of the result that it owns.
func (r *Result) SetImportUID(uid types.UID) {
	set := func(references []metav1.OwnerReference) {
		for i := range references {
			if references[i].Kind == v1beta1.ServiceImportKindName {
				references[i].UID = uid
			}
		}
	}
	if r.DerivedService != nil {
		set(r.DerivedService.OwnerReferences)
	}
	for _, slice := range r.EndpointSlices {
		set(slice.OwnerReferences)
	}
}
