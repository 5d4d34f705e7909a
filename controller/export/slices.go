// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// A Source has the origin of slices, and the rules by which the local cluster reads them.
type Source struct {
	// Cluster is the id of the exporting cluster, from the credential with which its slices were read, or from their
	// copies.
	Cluster string
	// CIDRs restrict the addresses of endpoints; empty means no restriction.
	CIDRs []netip.Prefix
	// Owns reports whether an address in canonical form belongs to the local cluster: to a node, the API server or a
	// Service, or to a range of Services or, if it is exposed, of pods. nil means that none does.
	Owns func(address string, exposed bool) bool
	// Network is the network of the local cluster's pods. Slices for other networks are ignored.
	Network string
	// Keep uses all copies instead of the slices. They may be for any network: the local cluster may have been in another one.
	Keep bool
	// Reader is the local cluster. Slices for chosen clusters are ignored if these do not include it.
	Reader scope.Cluster
}

// SlicesOf returns the slices whose label names the cluster as their source, in a new list.
func SlicesOf(cluster string, all []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	return slices.DeleteFunc(slices.Clone(all), func(slice *discoveryv1.EndpointSlice) bool {
		return slice.Labels[LabelSourceCluster] != cluster
	})
}

// sorted returns slices by name in a new list, so that what is read of them, and told, does not depend on their order.
func sorted(all []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	return slices.SortedStableFunc(slices.Values(all), func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Compare(a.Name, b.Name)
	})
}

// FromSlices returns the view of an export from the slices that carry its snapshots, in any order: those that the
// exporting cluster publishes, or their copies. Slices without the label of the controller, and those that are
// being deleted, are ignored.
//
// Everything in a slice is validated. Invalid endpoints and exported metadata are left out and reported. If a slice is
// refused as a whole (unknown version, invalid snapshot), its copy, if there is one, is used instead and returned in used.
// The view is nil if no slice remains, which means that the service is not exported. It is Absent if all remaining slices
// are. It shares immutable parts with the inputs, which stay unchanged.
func FromSlices(from Source, service types.NamespacedName, endpointSlices, copies []*discoveryv1.EndpointSlice,
) (_ *View, _ []Problem, used []*discoveryv1.EndpointSlice) {
	if from.Keep {
		endpointSlices, copies = copies, nil
	}
	r := viewReader{from: from, view: &View{Cluster: from.Cluster, Service: service}}
	r.read(endpointSlices)
	found, used := r.found, r.copiesOf(copies)
	r.found, r.from.Keep = problems{}, true // copies were reported when they were published
	r.read(used)
	view := r.view
	slices.SortFunc(view.Slices, func(a, b Slice) int { return cmp.Compare(a.Name, b.Name) })
	for i := range view.Slices {
		view.Slices[i].Targets = ofPorts(view.Slices[i].Targets, view.Spec.Ports)
	}
	switch {
	case len(view.Slices) > 0:
	case r.absent != nil:
		view.Slices = []Slice{*r.absent}
	case r.otherNetwork != "":
		found.add(ReasonNotExposed, r.otherNetwork, "its endpoints are in another network, and the export is not exposed to others: "+
			"annotate the ServiceExport in cluster %s with %s", from.Cluster, AnnotationExpose)
		fallthrough
	default:
		return nil, found.list, used
	}
	if used == nil && from.Keep {
		used = endpointSlices
	}
	return view, found.list, used
}

// A viewReader builds the view of one export from its readable slices.
type viewReader struct {
	from Source
	view *View
	// refused are the names of the slices that cannot be read.
	refused []string
	found   problems
	// absent is the first slice by name that says that the Service does not exist.
	absent *Slice
	// otherNetwork names a slice that is not for the network of the reader, empty for none.
	otherNetwork string
}

// read adds slices to the view. It reports those that are refused as a whole.
func (r *viewReader) read(endpointSlices []*discoveryv1.EndpointSlice) {
	for _, slice := range sorted(endpointSlices) {
		// A slice that is being deleted is withdrawn, although a finalizer of another owner may keep it for long.
		if IsManaged(slice) && slice.DeletionTimestamp == nil {
			decoded, err := r.check(slice)
			switch {
			case err != nil:
				r.refuse(slice, err)
			case decoded.Clusters != "" && !decoded.clusters.Selects(r.from.Reader, r.from.Reader): // the reader ignores it
			case !r.from.Keep && (decoded.Slice.Network == r.from.Network) == (decoded.Slice.Exposed != ""):
				r.otherNetwork = objectName(slice)
			default:
				r.add(slice, decoded)
			}
		}
	}
}

func (r *viewReader) refuse(slice *discoveryv1.EndpointSlice, err error) {
	r.found.add(ReasonBadSnapshot, objectName(slice), "%v", err)
	r.refused = append(r.refused, slice.Name)
}

// check decodes the snapshot of a slice, or returns why the slice is refused.
func (r *viewReader) check(slice *discoveryv1.EndpointSlice) (snapshot, error) {
	service := r.view.Service
	if ServiceOf(slice) != service || slice.Labels[LabelSourceCluster] != r.from.Cluster {
		return snapshot{}, fmt.Errorf("its namespace or labels are not those of service %s in cluster %q", service, r.from.Cluster)
	}
	if len(validation.IsDNS1123Label(service.Name)) > 0 { // label values and names of ServiceExports allow more
		return snapshot{}, fmt.Errorf("no Service can have the name %q", service.Name)
	}
	if slice.AddressType != discoveryv1.AddressTypeIPv4 && slice.AddressType != discoveryv1.AddressTypeIPv6 {
		return snapshot{}, fmt.Errorf("address type %.100q is not known", slice.AddressType)
	}
	decoded, err := readSnapshot(slice)
	name := decoded.Slice.Name
	if r.from.Keep {
		name = SliceName(r.from.Cluster, service, name, slice.AddressType)
	}
	switch {
	case err != nil:
		return snapshot{}, err
	case decoded.Cluster != r.from.Cluster:
		return snapshot{}, fmt.Errorf("its snapshot is of cluster %.100q, but it was read from %q", decoded.Cluster, r.from.Cluster)
	case len(decoded.Slice.Network)+len(decoded.Slice.Exposed) > scope.MaxBytes: // the copy has them, too
		return snapshot{}, fmt.Errorf("network %.100q or exposure %.100q is too long", decoded.Slice.Network, decoded.Slice.Exposed)
	case name != slice.Name || len(validation.IsDNS1123Subdomain(decoded.Slice.Name)) > 0:
		return snapshot{}, fmt.Errorf("its snapshot is of slice %.100q", decoded.Slice.Name)
	case slices.ContainsFunc(decoded.Slice.Targets, func(t Target) bool { return !validNumber(t.Port) }):
		return snapshot{}, fmt.Errorf("a target port is not valid")
	case !decoded.Absent && decoded.Service == nil:
		return snapshot{}, fmt.Errorf("it has no service")
	case decoded.Service != nil && len(decoded.Service.Ports) > maxPorts: // the ports of all slices are in memory at once
		return snapshot{}, fmt.Errorf("it has %d ports; the limit is %d", len(decoded.Service.Ports), maxPorts)
	}
	return decoded, nil
}

// add adds an accepted slice to the view. The first slice by name provides the spec of the service.
func (r *viewReader) add(accepted *discoveryv1.EndpointSlice, decoded snapshot) {
	object, slice := objectName(accepted), decoded.Slice.Slice
	if decoded.Absent {
		slice.Targets = nil
		r.absent = cmp.Or(r.absent, &slice)
		return
	}
	if r.view.Spec == nil {
		spec, err := validSpec(*decoded.Service, object, &r.found)
		if err != nil {
			r.refuse(accepted, err)
			return
		}
		r.view.Spec = spec
	}
	endpoints := endpointReader{
		addressType: slice.AddressType, from: &r.from, exposed: slice.Exposed != "", demoted: decoded.Slice.Demoted,
		object: object, found: &r.found,
	}
	slice.Endpoints, slice.TriggerTime = endpoints.read(accepted.Endpoints), triggerTime(accepted)
	r.view.Slices = append(r.view.Slices, slice)
}

// copiesOf returns the copies of refused slices.
func (r *viewReader) copiesOf(copies []*discoveryv1.EndpointSlice) (of []*discoveryv1.EndpointSlice) {
	names := map[string]bool{}
	for _, name := range r.refused {
		// A slice may be refused because of its address type, which its copy was named after.
		for _, addressType := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			names[SliceName(r.from.Cluster, r.view.Service, name, addressType)] = true
		}
	}
	for _, slice := range copies {
		if names[slice.Name] {
			of = append(of, slice)
		}
	}
	return of
}

// ofPorts returns the first target of each port that the Service has. Slices of a changing export may disagree for a moment.
func ofPorts(targets []Target, ports []Port) (has []Target) {
	for _, port := range ports {
		at := slices.IndexFunc(targets, func(t Target) bool { return t.Protocol == port.Protocol && t.Number == port.Number })
		if at >= 0 {
			has = append(has, targets[at])
		}
	}
	return has
}
