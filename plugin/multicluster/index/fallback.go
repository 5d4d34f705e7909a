// SPDX-License-Identifier: Apache-2.0

package index

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// This file has what other implementations of the Multi-Cluster Services API do where the specification asks for
// spec.ips: their import has none, and its addresses are those of a Service behind it, or of its EndpointSlices.

// Annotations of ServiceImports that name the Service behind them.
const (
	// annotationDerived is the reference implementation's, and Cilium's: a name.
	annotationDerived = "multicluster.kubernetes.io/derived-service"
	// annotationDerivedGKE is Google's: a name.
	annotationDerivedGKE = "net.gke.io/derived-service"
	// annotationDerivedAWS is the AWS Cloud Map MCS controller's: a JSON list of clusters, each with the name of a Service.
	annotationDerivedAWS = "multicluster.k8s.aws/derived-service"
)

// MirroredBy is the label endpointslice.kubernetes.io/managed-by of the EndpointSlices that Kubernetes makes of Endpoints
// objects.
const MirroredBy = "endpointslicemirroring-controller.k8s.io"

// annotationSubmarinerNamespace, as a label or an annotation of a ServiceImport or EndpointSlice, is the namespace of
// the service that Submariner has it for.
const annotationSubmarinerNamespace = "lighthouse.submariner.io/sourceNamespace"

// submarinerNamespaces are where Submariner keeps an import for each exporting cluster, and one for each service.
var submarinerNamespaces = []string{"submariner-operator", "submariner-k8s-broker"}

// isBookkeeping tells whether a ServiceImport is another implementation's note to itself, which is no service of the
// namespace it lies in: Submariner's, by the namespaces it keeps them in, or by what they say they are for.
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

// annotatedServices are the Services that the import says are behind it, sorted, each once.
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

// mirroredServices is the Service that GKE's import says is behind it, if any.
func mirroredServices(annotations map[string]string) []string {
	if name := annotations[annotationDerivedGKE]; isLabel(name) {
		return []string{strings.Clone(name)}
	}
	return nil
}

// isMirrored tells whether Kubernetes made the slice of an Endpoints object, which is of no cluster.
func isMirrored(object *discoveryv1.EndpointSlice) bool {
	return object.Labels[discoveryv1.LabelManagedBy] == MirroredBy
}

// usualServices are the names that implementations give the Service behind an import: the reference implementation,
// Karmada, Antrea.
func usualServices(key string) []string {
	name, namespace, _ := strings.Cut(key, ".")
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	hash := strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))[:10]
	return []string{"derived-" + hash, "derived-" + name, "antrea-mc-" + name}
}

// MirroredServices are the names of the Services, in the import's namespace, whose mirrored EndpointSlices have its
// endpoints: that of GKE's annotation, where the import is headless.
func (i *Import) MirroredServices() []string {
	if !i.Headless {
		return nil
	}
	return i.derived
}

// Wanting tells whether the import has no address where it should have one: it is ClusterSetIP, and spec.ips has none
// that is usable.
func (i *Import) Wanting() bool { return !i.Headless && !i.refused && len(i.addrs) == 0 }

// DerivedServices are the names of the Services, in the import's namespace, whose addresses stand in for those that the
// import is wanting: those that its annotations name, or else those that some implementation would give it.
func (i *Import) DerivedServices() []string {
	switch {
	case !i.Wanting():
		return nil
	case len(i.derived) > 0:
		return i.derived
	default:
		return usualServices(i.Key)
	}
}

// WithServices is the import with the addresses of its derived Services in the place of those that it is wanting. It is
// the import itself where there are none. Services that annotations name count together (the AWS controller has one for
// each cluster); of the usual names the first that has addresses counts.
func (i *Import) WithServices(addresses func(service string) []netip.Addr) *Import {
	var all []netip.Addr
	for _, name := range i.DerivedServices() {
		all = append(all, addresses(name)...)
		if len(i.derived) == 0 && len(all) > 0 {
			break
		}
	}
	return i.with(all)
}

// WithEndpoints is the import with the addresses of its slices in the place of those that it is wanting: the ready ones,
// or else those that are serving and terminating. Its ports are those of the slices that it declares, with the slices'
// numbers, since the numbers belong to the addresses. It is the import itself where there are none.
func (i *Import) WithEndpoints(from []*Slice) *Import {
	if !i.Wanting() {
		return i
	}
	anyReady := slices.ContainsFunc(from, func(s *Slice) bool { return s.ready > 0 })
	var addrs []netip.Addr
	var ports []Port
	for _, s := range from {
		end := int(s.ready)
		if !anyReady {
			end = s.Len()
		}
		for at := range end {
			addrs = append(addrs, addrOf(s.addrs[at*int(s.size):(at+1)*int(s.size)]))
		}
		if end > 0 {
			ports = append(ports, slices.DeleteFunc(slices.Clone(s.ports), func(p Port) bool { return !i.declares(p) })...)
		}
	}
	filled := i.with(addrs)
	if filled != i {
		filled.ports = normalPorts(ports)
	}
	return filled
}

// with is a copy of the import that has the addresses, or the import where there are none.
func (i *Import) with(addrs []netip.Addr) *Import {
	if len(addrs) == 0 {
		return i
	}
	filled := *i
	filled.addrs = normalAddrs(slices.Clone(addrs))
	return &filled
}

// ServiceAddresses are the addresses of a Service that stand in for those of an import: its cluster IPs, as far as they
// are IPs that a service can have. A headless Service has none.
func ServiceAddresses(object *corev1.Service) []netip.Addr {
	var addrs []netip.Addr
	for _, ip := range object.Spec.ClusterIPs {
		if addr, err := netip.ParseAddr(ip); err == nil && isServiceAddress(addr) {
			addrs = append(addrs, addr)
		}
	}
	return normalAddrs(addrs)
}

// normalAddrs sorts addresses, drops repeated ones and the capacity that is not needed.
func normalAddrs(addrs []netip.Addr) []netip.Addr {
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Clip(slices.Compact(addrs))
}
