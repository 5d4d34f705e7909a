// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Import has the parts of a ServiceImport that DNS needs. It is immutable.
type Import struct {
	// Key is "<name>.<namespace>", or "<namespace>//<name>" if the import is refused.
	Key string
	// Headless is true for type Headless and false for ClusterSetIP. Schemas have no other type.
	Headless bool
	// Addrs are the distinct addresses of spec.ips, sorted. A headless import has none.
	Addrs []netip.Addr
	// Ports are the distinct ports of the import, sorted.
	Ports []Port
	// Prefer says which endpoints come first.
	Prefer Preference
	// Skips is what was left out.
	Skips Skips
	// Refused reports that the import can have no records at all.
	Refused bool

	anyPort  bool              // headless and without ports: the ports of its slices are used
	families []corev1.IPFamily // of a headless import; empty means both
	derived  []string          // the distinct names of the Services in the annotations, sorted
}

// FromServiceImport converts a ServiceImport.
func FromServiceImport(object *mcsv1beta1.ServiceImport) *Import {
	imported := &Import{
		Key:      object.Name + "." + object.Namespace,
		Headless: object.Spec.Type == mcsv1beta1.Headless,
	}
	switch {
	case isBookkeeping(object):
		return imported.refuse(object, Bookkeeping)
	case !isLabel(object.Name) || !isLabel(object.Namespace):
		return imported.refuse(object, InvalidName)
	}
	addrs := ServiceAddresses(object.Spec.IPs)
	if invalid := len(object.Spec.IPs) - len(addrs); invalid > 0 {
		imported.Skips.Add(InvalidIP, invalid)
	}
	if !imported.Headless {
		imported.Addrs = distinct(addrs, netip.Addr.Compare)
	}
	imported.derived = annotatedServices(object.Annotations)
	for i := range object.Spec.Ports {
		port := &object.Spec.Ports[i]
		imported.Ports = appendPort(imported.Ports, &imported.Skips, port.Name, port.Protocol, port.Port)
	}
	imported.Ports = distinct(imported.Ports, comparePorts)
	if imported.Headless {
		imported.Prefer = preferenceOf(object)
		imported.anyPort, imported.families = len(object.Spec.Ports) == 0, slices.Clone(object.Spec.IPFamilies)
	}
	return imported
}

// FromUndecodable returns a refused import of which only name and namespace are known.
func FromUndecodable(object *mcsv1beta1.ServiceImport) *Import {
	return new(Import).refuse(object, Undecodable)
}

func (i *Import) refuse(object *mcsv1beta1.ServiceImport, reason Reason) *Import {
	i.Refused = true
	i.Key = object.Namespace + "//" + object.Name // neither a query nor a slice has a key of this form
	i.Skips.Add(reason, 1)
	return i
}

// AnnotationPrefer on a ServiceImport sets the endpoints that its clients prefer: "cluster" or "local" prefers
// endpoints of the local cluster, "none" prefers no cluster. Other values are tiers of clusters: only the endpoints of
// the best tier are ready. The value comes from the exports.
const AnnotationPrefer = "clusterset-dns.github.io/prefer"

// preferenceOf returns the preference that the import sets. "cluster" takes precedence over a traffic distribution,
// which prefers the zone of the client even if the zone is in another cluster. Unknown values are ignored.
func preferenceOf(object *mcsv1beta1.ServiceImport) Preference {
	prefer := object.Annotations[AnnotationPrefer]
	if prefer == "cluster" || prefer == "local" {
		return PreferCluster
	}
	switch ptr.Deref(object.Spec.TrafficDistribution, "") {
	case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone,
		corev1.ServiceTrafficDistributionPreferSameNode:
		return PreferZone
	}
	if prefer == "none" {
		return PreferNone
	}
	return PreferDefault
}

// HasFamily reports whether the import has the family whose addresses have this many octets.
func (i *Import) HasFamily(size uint8) bool {
	family := corev1.IPv4Protocol
	if size == 16 {
		family = corev1.IPv6Protocol
	}
	return len(i.families) == 0 || slices.Contains(i.families, family)
}

// Declares reports whether the import has a port of this name and protocol; the number is ignored.
func (i *Import) Declares(port Port) bool {
	return i.anyPort || len(labeled(i.Ports, port.Label)) > 0
}
