// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Import is what DNS needs of a ServiceImport. It is immutable.
type Import struct {
	// Key is "<name>.<namespace>", or "<namespace>//<name>" if the import is refused.
	Key string
	// Headless is the type: Headless or ClusterSetIP.
	Headless bool
	// Addrs are the addresses of spec.ips, sorted, each once. A headless import has none.
	Addrs []netip.Addr
	// Ports are the distinct ports of the import, sorted.
	Ports []Port
	// Prefer is which endpoints come first.
	Prefer Preference
	// Skips is what was left out.
	Skips Skips
	// Refused is an import that can have no records at all.
	Refused bool

	anyPort bool // headless, and declares no ports: those of its slices count
	lacks   struct{ v4, v6 bool }
	derived []string // the Services that annotations name, sorted, each once
}

// FromServiceImport reads a ServiceImport.
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
	case !imported.Headless && object.Spec.Type != mcsv1beta1.ClusterSetIP:
		return imported.refuse(object, InvalidType)
	}
	for _, ip := range object.Spec.IPs {
		switch addr, _ := netip.ParseAddr(strings.TrimSpace(ip)); {
		case !isServiceAddress(addr):
			imported.Skips.Add(InvalidIP, 1)
		case !imported.Headless:
			imported.Addrs = append(imported.Addrs, addr)
		}
	}
	imported.Addrs = sortAddrs(imported.Addrs)
	imported.derived = annotatedServices(object.Annotations)
	for i := range object.Spec.Ports {
		port := &object.Spec.Ports[i]
		imported.Ports = appendPort(imported.Ports, &imported.Skips, port.Name, port.Protocol, port.Port)
	}
	imported.Ports = sortPorts(imported.Ports)
	if imported.Headless {
		imported.Prefer = preferenceOf(object)
		imported.anyPort = len(object.Spec.Ports) == 0
		if families := object.Spec.IPFamilies; len(families) > 0 {
			imported.lacks.v4 = !slices.Contains(families, corev1.IPv4Protocol)
			imported.lacks.v6 = !slices.Contains(families, corev1.IPv6Protocol)
		}
	}
	return imported
}

// FromUndecodable is an import of which only name and namespace are known.
func FromUndecodable(object *mcsv1beta1.ServiceImport) *Import {
	return new(Import).refuse(object, Undecodable)
}

func (i *Import) refuse(object *mcsv1beta1.ServiceImport, reason Reason) *Import {
	i.Refused = true
	i.Key = object.Namespace + "//" + object.Name // neither a query nor a slice has such a key
	i.Skips.Add(reason, 1)
	return i
}

// AnnotationPrefer on a ServiceImport says which endpoints its clients prefer: "cluster" or "local" those of the local
// cluster, "none" those of no cluster. Other values are tiers of clusters: the endpoints of the best one are ready.
// Exports set it.
const AnnotationPrefer = "clusterset-dns.github.io/prefer"

// preferenceOf is the preference of an import itself. "cluster" is stronger than a traffic distribution, which prefers
// the zone of the client also if it is in another cluster. Unknown values say nothing.
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

// HasFamily reports whether the import has the family with addresses of so many octets: it lists no families, or this
// one.
func (i *Import) HasFamily(size uint8) bool {
	if size == 4 {
		return !i.lacks.v4
	}
	return !i.lacks.v6
}

// Declares reports whether the import has a port of that name and protocol, of whatever number.
func (i *Import) Declares(port Port) bool {
	return i.anyPort || len(labeled(i.Ports, port.Label)) > 0
}
