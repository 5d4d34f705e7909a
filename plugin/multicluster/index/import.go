// SPDX-License-Identifier: Apache-2.0

package index

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Import is what DNS needs of a ServiceImport. It is immutable.
type Import struct {
	// Key is "<name>.<namespace>", or "<namespace>/<name>" where the import can have no records.
	Key string
	// Headless tells the type: Headless or ClusterSetIP.
	Headless bool
	// addrs are the addresses of spec.ips, sorted, each once. A headless import has none.
	addrs []netip.Addr
	// ports are those that the import declares, sorted, each once.
	ports []Port
	// anyPort is a headless import that declares no ports: those of its slices count.
	anyPort bool
	// without tells which families the import says it does not have: it lists families, and these are not among them.
	without struct{ v4, v6 bool }
	// derived are the Services that its annotations name: where it has no address itself those with its addresses, and
	// where it is headless those with its endpoints. They are sorted, each once.
	derived []string
	// prefer is what the import says of which endpoints come first.
	prefer Preference
	skips  *Skips
	// refused is an import that can have no records at all.
	refused bool
}

// FromServiceImport reads a ServiceImport and keeps nothing of it.
func FromServiceImport(object *mcsv1beta1.ServiceImport) *Import {
	imported := &Import{
		Key:      object.Name + "." + object.Namespace,
		Headless: object.Spec.Type == mcsv1beta1.Headless,
	}
	switch {
	case isBookkeeping(object):
		imported.refuse(object, Bookkeeping)
		return imported
	case !isLabel(object.Name) || !isLabel(object.Namespace):
		imported.refuse(object, InvalidName)
		return imported
	case !imported.Headless && object.Spec.Type != mcsv1beta1.ClusterSetIP:
		imported.refuse(object, InvalidType)
		return imported
	}
	for _, ip := range object.Spec.IPs {
		addr, err := netip.ParseAddr(strings.TrimSpace(ip))
		switch {
		case err != nil || !isServiceAddress(addr):
			skip(&imported.skips, InvalidIP)
		case !imported.Headless:
			imported.addrs = append(imported.addrs, addr)
		}
	}
	imported.addrs = normalAddrs(imported.addrs)
	switch {
	case imported.Wanting():
		imported.derived = annotatedServices(object.Annotations)
	case imported.Headless:
		imported.derived = mirroredServices(object.Annotations)
	}
	var ports []Port
	for i := range object.Spec.Ports {
		declared := &object.Spec.Ports[i]
		port, ok := portOf(declared.Name, declared.Protocol, declared.Port)
		if !ok {
			skip(&imported.skips, InvalidPort)
			continue
		}
		ports = append(ports, port)
	}
	imported.ports = normalPorts(ports)
	if imported.Headless {
		imported.prefer = preferenceOf(object)
		imported.anyPort = len(object.Spec.Ports) == 0
		if families := object.Spec.IPFamilies; len(families) > 0 {
			imported.without.v4 = !slices.Contains(families, corev1.IPv4Protocol)
			imported.without.v6 = !slices.Contains(families, corev1.IPv6Protocol)
		}
	}
	return imported
}

// refuse leaves the import out.
func (i *Import) refuse(object *mcsv1beta1.ServiceImport, reason Reason) {
	i.refused = true
	i.Key = object.Namespace + "/" + object.Name // no query asks for such a key
	skip(&i.skips, reason)
}

// Equal tells whether two imports give the same answers.
func (i *Import) Equal(other *Import) bool {
	return i.Key == other.Key && i.Headless == other.Headless && i.refused == other.refused &&
		i.prefer == other.prefer && i.anyPort == other.anyPort && i.without == other.without && slices.Equal(i.addrs, other.addrs) && slices.Equal(i.ports, other.ports) &&
		slices.Equal(i.derived, other.derived) && equalSkips(i.skips, other.skips)
}

// has tells whether the import has the family whose addresses have that many octets.
func (i *Import) has(size uint8) bool {
	if size == 4 {
		return !i.without.v4
	}
	return !i.without.v6
}

// declares tells whether the import has a port of that name and protocol.
func (i *Import) declares(port Port) bool {
	if i.anyPort {
		return true
	}
	from, to := portRange(i.ports, portName{port.Name, port.Protocol})
	return from < to
}
