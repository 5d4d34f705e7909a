// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// FromService returns the view of an export of the local cluster. service is nil if it does not exist. endpointSlices
// are, in any order, the slices with the Service's label kubernetes.io/service-name and the published slices of the
// export. Of the published ones, it uses the ports of pods that cannot be read and, while the addresses for clusters of
// other networks are unknown, the exposed slices. Other slices of this controller or of another implementation of the MCS
// API are ignored.
//
// Invalid is why an export is invalid. Its view is nil, or Absent if the Service does not exist. The problems are other
// parts that were left out. The view shares immutable parts with the inputs, which stay unchanged.
func FromService(from Exporter, serviceExport *v1beta1.ServiceExport, service *corev1.Service,
	endpointSlices []*discoveryv1.EndpointSlice,
) (*View, []Problem, *Invalid) {
	from.published = endpointSlices
	name := types.NamespacedName{Namespace: serviceExport.Namespace, Name: serviceExport.Name}
	clusters, err := ChosenClusters(serviceExport)
	invalid := checkService(serviceExport, service)
	view := &View{Cluster: from.Cluster, Service: name}
	switch {
	case invalid != nil && invalid.Reason != string(v1beta1.ServiceExportReasonNoService):
		return nil, nil, invalid
	case err != nil:
		return nil, nil, &Invalid{InvalidClusters, fmt.Sprintf("ServiceExport %s is exported to no cluster: annotation %s: %v.",
			name, AnnotationClusters, err)}
	case invalid != nil:
		view.Slices = []Slice{from.slice(name, "", discoveryv1.AddressTypeIPv4, clusters)}
		if exposure, _ := from.Exposure(serviceExport); exposure != ExposeNone {
			view.Exposed = from.publish(view, exposure, nil, nil)
		}
		return view, nil, invalid
	}
	var found problems
	object := "ServiceExport " + name.String()
	for _, key := range ExportedKeys {
		if _, has := serviceExport.Annotations[key]; has {
			found.add(ReasonBadMetadata, object+", annotation "+key, "it has no effect in metadata.annotations: move it to spec.exportedAnnotations")
		}
	}
	if view.Spec, err = validSpec(specOf(serviceExport, service), object, &found); err != nil {
		return nil, nil, &Invalid{Reason: InvalidSpec, Message: fmt.Sprintf("Service %s cannot be exported: %v.", name,
			err)}
	}
	for _, object := range sorted(endpointSlices) {
		if slice, exported := from.ownSlice(view, object, clusters, &found); exported {
			view.Slices = append(view.Slices, slice)
		}
	}
	if len(view.Slices) == 0 {
		view.Slices = []Slice{from.slice(name, "", discoveryv1.AddressType(view.Spec.IPFamilies[0]), clusters)}
	}
	slices.SortFunc(view.Slices, func(a, b Slice) int { return cmp.Compare(a.Name, b.Name) })
	view.Exposed = from.exposed(view, serviceExport, service, &found)
	text := serviceExport.Annotations[AnnotationOverloaded]
	if view.Spec.Overloaded = text == "true"; !slices.Contains([]string{"true", "false", ""}, text) {
		found.add(ReasonBadMetadata, object+", annotation "+AnnotationOverloaded, "%.20q has no effect: use true or false", text)
	}
	return view, found.list, nil
}

// ownSlice converts an EndpointSlice of the Service of a view for export to the clusters of a selector, if it is exported.
func (e Exporter) ownSlice(view *View, slice *discoveryv1.EndpointSlice, clusters string, found *problems) (_ Slice, exported bool) {
	if IsManaged(slice) || slice.Labels[LabelSourceCluster] != "" {
		return Slice{}, false
	}
	object := objectName(slice)
	if slice.AddressType != discoveryv1.AddressTypeIPv4 && slice.AddressType != discoveryv1.AddressTypeIPv6 {
		found.add(ReasonBadAddress, object, "address type %q is not exported", slice.AddressType)
		return Slice{}, false
	}
	reader := endpointReader{addressType: slice.AddressType, object: object, found: found}
	own := e.slice(view.Service, slice.Name, slice.AddressType, clusters)
	own.Targets, own.Endpoints, own.TriggerTime = targetsOf(view.Spec.Ports, slice.Ports), reader.read(slice.Endpoints), triggerTime(slice)
	return own, true
}

// slice returns a slice without endpoints, named after a source slice, or after none for an export without endpoints. The
// network is part of the name, so that a cluster that changes its network publishes new slices before it deletes the old
// ones: readers in both networks have endpoints at each moment.
func (e Exporter) slice(service types.NamespacedName, source string, addressType discoveryv1.AddressType, clusters string) Slice {
	if e.Network != "" {
		source = e.Network + "//" + source
	}
	return Slice{Name: SliceName(e.Cluster, service, source, addressType), AddressType: addressType, Clusters: clusters, Network: e.Network}
}

// ChosenClusters returns the cluster selector of an export, empty if it is for all clusters. A misplaced selector is an
// error, too, because the export is not meant for all clusters.
func ChosenClusters(serviceExport *v1beta1.ServiceExport) (string, error) {
	text, chosen := serviceExport.Annotations[AnnotationClusters]
	if !chosen {
		spec := serviceExport.Spec
		for _, elsewhere := range []map[string]string{serviceExport.Labels, spec.ExportedLabels, spec.ExportedAnnotations} {
			if _, misplaced := elsewhere[AnnotationClusters]; misplaced {
				return "", errors.New("it is in another field: move it to metadata.annotations")
			}
		}
		return "", nil
	}
	parsed, err := scope.ParseAbsolute(text)
	if err != nil || parsed.Selects(scope.Cluster{}, scope.Cluster{}) { // *
		return "", err
	}
	return text, nil
}

// checkService returns why the export contributes nothing, nil if it does.
func checkService(serviceExport *v1beta1.ServiceExport, service *corev1.Service) *Invalid {
	name := serviceExport.Namespace + "/" + serviceExport.Name
	switch {
	case serviceExport.DeletionTimestamp != nil:
		return &Invalid{InvalidDeleted, "ServiceExport " + name + " is being deleted."}
	case service == nil:
		return &Invalid{
			string(v1beta1.ServiceExportReasonNoService),
			"Service " + name + " does not exist. Create it, or delete the ServiceExport.",
		}
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return &Invalid{
			string(v1beta1.ServiceExportReasonInvalidServiceType),
			"Service " + name + " is of type ExternalName, which cannot be exported. Use another type.",
		}
	case IsManaged(service):
		return &Invalid{
			string(v1beta1.ServiceExportReasonInvalidServiceType),
			"Service " + name + " is imported and cannot be exported again. Export the original Service instead.",
		}
	}
	return nil
}

func specOf(serviceExport *v1beta1.ServiceExport, service *corev1.Service) Spec {
	spec := Spec{
		Created:               serviceExport.CreationTimestamp.Time,
		Type:                  v1beta1.ClusterSetIP,
		IPFamilies:            service.Spec.IPFamilies,
		SessionAffinity:       service.Spec.SessionAffinity,
		SessionAffinityConfig: service.Spec.SessionAffinityConfig,
		InternalTrafficPolicy: ptr.Deref(service.Spec.InternalTrafficPolicy, ""),
		TrafficDistribution:   ptr.Deref(service.Spec.TrafficDistribution, ""),
		Labels:                serviceExport.Spec.ExportedLabels,
		Annotations:           serviceExport.Spec.ExportedAnnotations,
	}
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		spec.Type = v1beta1.Headless
	}
	for _, port := range service.Spec.Ports {
		spec.Ports = append(spec.Ports, Port{
			Name: port.Name, Protocol: cmp.Or(port.Protocol, corev1.ProtocolTCP), Number: port.Port, AppProtocol: ptr.Deref(port.AppProtocol, ""),
		})
	}
	return spec
}

// targetsOf matches the ports of a Service with those of a slice, by name as Kubernetes does.
func targetsOf(ports []Port, slicePorts []discoveryv1.EndpointPort) []Target {
	var targets []Target
	for _, port := range ports {
		at := slices.IndexFunc(slicePorts, func(p discoveryv1.EndpointPort) bool {
			return ptr.Deref(p.Name, "") == port.Name && ptr.Deref(p.Protocol, corev1.ProtocolTCP) == port.Protocol &&
				validNumber(ptr.Deref(p.Port, 0))
		})
		if at >= 0 {
			targets = append(targets, Target{Protocol: port.Protocol, Number: port.Number, Port: *slicePorts[at].Port})
		}
	}
	return targets
}

// triggerTime returns the trigger time of a slice, empty if it is missing or invalid. Slices of Services have it under
// Kubernetes' key.
func triggerTime(slice *discoveryv1.EndpointSlice) string {
	text := cmp.Or(slice.Annotations[AnnotationTriggerTime], slice.Annotations[corev1.EndpointsLastChangeTriggerTime])
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return ""
	}
	return at.Format(time.RFC3339Nano) // with a bounded number of digits
}

func objectName(slice *discoveryv1.EndpointSlice) string {
	return "EndpointSlice " + slice.Namespace + "/" + slice.Name
}
