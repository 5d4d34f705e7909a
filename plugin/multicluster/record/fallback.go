// SPDX-License-Identifier: Apache-2.0

package record

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// This file finds addresses for imports of other MCS API implementations that leave spec.ips empty: the addresses of a
// Service behind the import, or of its EndpointSlices.

// Annotations of ServiceImports that name the Service behind them.
const (
	// annotationDerived is set by the reference implementation and Cilium: a name.
	annotationDerived = "multicluster.kubernetes.io/derived-service"
	// annotationDerivedGKE is set by GKE: a name.
	annotationDerivedGKE = "net.gke.io/derived-service"
	// annotationDerivedAWS is set by the AWS Cloud Map MCS controller: a JSON list of clusters, each with a name.
	annotationDerivedAWS = "multicluster.k8s.aws/derived-service"
)

// MirroredBy is the value of the label endpointslice.kubernetes.io/managed-by on EndpointSlices that Kubernetes mirrors
// from Endpoints objects.
const MirroredBy = "endpointslicemirroring-controller.k8s.io"

// annotationSubmarinerNamespace is a label or an annotation of Submariner's ServiceImports: the namespace of the
// imported service.
const annotationSubmarinerNamespace = "lighthouse.submariner.io/sourceNamespace"

// submarinerNamespaces contain Submariner's own imports: one per service and one per exporting cluster.
var submarinerNamespaces = []string{"submariner-operator", "submariner-k8s-broker"}

// isBookkeeping reports whether another implementation uses the import internally. Such an import is not a service of
// its namespace.
func isBookkeeping(object *mcsv1beta1.ServiceImport) bool {
	if slices.Contains(submarinerNamespaces, object.Namespace) {
		return true
	}
	for _, keys := range []map[string]string{object.Labels, object.Annotations} {
		if source := keys[annotationSubmarinerNamespace]; source != "" && source != object.Namespace {
			return true
		}
	}
	return false
}

// annotatedServices returns the distinct names of the Services in the annotations, sorted.
func annotatedServices(annotations map[string]string) []string {
	var derived []struct {
		Service string `json:"derived-service"`
	}
	_ = json.Unmarshal([]byte(annotations[annotationDerivedAWS]), &derived) // what is no list has no names
	names := []string{strings.Clone(annotations[annotationDerived]), strings.Clone(annotations[annotationDerivedGKE])}
	for _, d := range derived {
		names = append(names, d.Service)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !isLabel(name) })
	slices.Sort(names)
	return append([]string(nil), slices.Compact(names)...) // most imports have none, and keep no memory for them
}

// usualServices returns the names that implementations give the Service behind an import: the reference implementation,
// Karmada, Antrea, ACK One.
func usualServices(key string) []string {
	name, namespace, _ := strings.Cut(key, ".")
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	hash := strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))[:10]
	return []string{"derived-" + hash, "derived-" + name, "antrea-mc-" + name, "amcs-" + name}
}

// LacksAddress reports whether the import is ClusterSetIP and spec.ips has no usable address.
func (i *Import) LacksAddress() bool { return !i.Headless && !i.Refused && len(i.Addrs) == 0 }

// DerivedServices returns the names of the Services behind the import, in its namespace: the names in its annotations or,
// if there are none and the import lacks addresses, the usual names. WithServices takes addresses from these Services. For
// a GKE import, their mirrored EndpointSlices have its endpoints. The list is shared and must not be changed.
func (i *Import) DerivedServices() []string {
	if i.LacksAddress() && len(i.derived) == 0 {
		return usualServices(i.Key)
	}
	return i.derived
}

// WithServices returns a copy of an import that lacks addresses with the addresses of its derived Services, or the
// import if there are none. It combines all Services that annotations name (the AWS controller names one per cluster).
// Of the usual names it uses the first with addresses.
func (i *Import) WithServices(addresses func(service string) []netip.Addr) *Import {
	var all []netip.Addr
	for _, name := range i.DerivedServices() {
		if len(i.derived) > 0 || len(all) == 0 {
			all = append(all, addresses(name)...)
		}
	}
	return i.with(all, i.Ports)
}

// WithEndpoints returns a copy of an import that lacks addresses with the addresses of its slices, or the import if
// there are none. It uses ready addresses, or else serving and terminating ones. The ports are the declared ports with
// the numbers of the slices, because the addresses listen on these numbers.
func (i *Import) WithEndpoints(from []*Endpoints) *Import {
	anyReady := slices.ContainsFunc(from, func(e *Endpoints) bool { return e.ready > 0 })
	var addrs []netip.Addr
	var ports []Port
	for _, e := range from {
		end := int(e.ready)
		if !anyReady {
			end = e.Len()
		}
		for at := range end {
			addr, _ := netip.AddrFromSlice(e.Addr(at))
			addrs = append(addrs, addr)
		}
		for _, port := range e.ports {
			if end > 0 && i.Declares(port) {
				ports = append(ports, port)
			}
		}
	}
	return i.with(addrs, distinct(ports, comparePorts))
}

// with returns a copy of the import with the addresses and ports, or the import if it has addresses or addrs is empty.
func (i *Import) with(addrs []netip.Addr, ports []Port) *Import {
	if len(addrs) == 0 || !i.LacksAddress() {
		return i
	}
	filled := *i
	filled.Addrs, filled.Ports = distinct(addrs, netip.Addr.Compare), ports
	return &filled
}

// ServiceAddresses returns the addresses among the IPs of a Service or an import. A headless Service has none.
func ServiceAddresses(ips []string) (addrs []netip.Addr) {
	for _, ip := range ips {
		if addr, _ := netip.ParseAddr(strings.TrimSpace(ip)); isServiceAddress(addr) {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}
