// SPDX-License-Identifier: Apache-2.0

package record

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// This file has what stands in for spec.ips of imports by other implementations of the Multi-Cluster Services API: the
// addresses of a Service behind the import, or of its EndpointSlices.

// Annotations of ServiceImports that name the Service behind them.
const (
	// annotationDerived is that of the reference implementation and Cilium: a name.
	annotationDerived = "multicluster.kubernetes.io/derived-service"
	// annotationDerivedGKE is that of GKE: a name.
	annotationDerivedGKE = "net.gke.io/derived-service"
	// annotationDerivedAWS is that of the AWS Cloud Map MCS controller: a JSON list of clusters, each with a name.
	annotationDerivedAWS = "multicluster.k8s.aws/derived-service"
)

// MirroredBy is the label endpointslice.kubernetes.io/managed-by of the EndpointSlices that Kubernetes makes of
// Endpoints objects.
const MirroredBy = "endpointslicemirroring-controller.k8s.io"

// annotationSubmarinerNamespace is the namespace of the service that Submariner made a ServiceImport for, as a label or
// an annotation.
const annotationSubmarinerNamespace = "lighthouse.submariner.io/sourceNamespace"

// submarinerNamespaces have an import for each service and one for each exporting cluster.
var submarinerNamespaces = []string{"submariner-operator", "submariner-k8s-broker"}

// isBookkeeping reports whether another implementation keeps the import for itself. It is not a service of its
// namespace.
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

// annotatedServices are the Services that annotations name, sorted, each once.
func annotatedServices(annotations map[string]string) []string {
	var names []string
	for _, key := range []string{annotationDerived, annotationDerivedGKE} {
		if name := annotations[key]; isLabel(name) {
			names = append(names, strings.Clone(name))
		}
	}
	var derived []struct {
		Service string `json:"derived-service"`
	}
	if text := annotations[annotationDerivedAWS]; text != "" && json.Unmarshal([]byte(text), &derived) == nil {
		for _, d := range derived {
			if isLabel(d.Service) {
				names = append(names, d.Service)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// usualServices are the names that implementations give the Service behind an import: the reference implementation,
// Karmada, Antrea, ACK One.
func usualServices(key string) []string {
	name, namespace, _ := strings.Cut(key, ".")
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	hash := strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))[:10]
	return []string{"derived-" + hash, "derived-" + name, "antrea-mc-" + name, "amcs-" + name}
}

// LacksAddress reports whether the import is ClusterSetIP and spec.ips has no usable address.
func (i *Import) LacksAddress() bool { return !i.Headless && !i.Refused && len(i.Addrs) == 0 }

// DerivedServices are the names of the Services behind the import, in its namespace: those that annotations name or, if it
// lacks addresses, else the usual ones. Their addresses stand in for those that the import lacks. The mirrored EndpointSlices
// of those of GKE have its endpoints. The list is shared and must not be changed.
func (i *Import) DerivedServices() []string {
	if i.LacksAddress() && len(i.derived) == 0 {
		return usualServices(i.Key)
	}
	return i.derived
}

// WithServices is the import with the addresses of its derived Services if it lacks addresses; without any it is the
// import itself. Services that annotations name count together (the AWS controller has one for each cluster). Of the
// usual names the first one with addresses counts.
func (i *Import) WithServices(addresses func(service string) []netip.Addr) *Import {
	var all []netip.Addr
	for _, name := range i.DerivedServices() {
		if len(i.derived) > 0 || len(all) == 0 {
			all = append(all, addresses(name)...)
		}
	}
	return i.with(all, i.Ports)
}

// WithEndpoints is the import with the addresses of its slices if it lacks addresses: the ready ones, or else those
// that are serving and terminating. Without any it is the import itself. Its ports are those of the slices that it
// declares, with the slices' numbers, because the numbers belong to the addresses.
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
	return i.with(addrs, sortPorts(ports))
}

// with is a copy of the import that has the addresses and the ports, if there are addresses and it lacks them.
func (i *Import) with(addrs []netip.Addr, ports []Port) *Import {
	if len(addrs) == 0 || !i.LacksAddress() {
		return i
	}
	filled := *i
	filled.Addrs, filled.Ports = sortAddrs(addrs), ports
	return &filled
}

// ServiceAddresses are the cluster IPs of a Service. A headless Service has none.
func ServiceAddresses(object *corev1.Service) []netip.Addr {
	var addrs []netip.Addr
	for _, ip := range object.Spec.ClusterIPs {
		if addr, _ := netip.ParseAddr(ip); isServiceAddress(addr) {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// sortAddrs sorts addresses and drops repeated ones and spare capacity.
func sortAddrs(addrs []netip.Addr) []netip.Addr {
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Clip(slices.Compact(addrs))
}
