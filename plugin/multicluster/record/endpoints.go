// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/netip"
	"slices"
	"strings"
	"unique"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Endpoints has the parts of an EndpointSlice that DNS needs, as a packed block. It is immutable. Ready endpoints come
// first, then waiting endpoints (see condition), then terminating endpoints, each in the order of the slice. Unusable
// endpoints are left out.
type Endpoints struct {
	Block

	ports          []Port   // in the order of the slice
	ready, waiting int32    // number of ready addresses, and of ready and waiting addresses
	skips          Skips    // what was left out
	zones          []string // of the addresses; nil if none is known or requested, as in most slices
}

// FromEndpointSlice reads an EndpointSlice, with the zones of its endpoints if zoned is set.
func FromEndpointSlice(object *discoveryv1.EndpointSlice, zoned bool) *Endpoints {
	e := &Endpoints{Block: Block{Class: Class{Size: 4, Weight: usualWeight}}}
	switch object.AddressType {
	case discoveryv1.AddressTypeIPv4:
	case discoveryv1.AddressTypeIPv6:
		e.Size = 16
	default:
		e.skips.Add(InvalidAddressType, 1)
		return e
	}
	switch cluster := strings.ToLower(object.Labels[mcsv1beta1.LabelSourceCluster]); {
	case IsClusterID(cluster):
		e.Cluster = unique.Make(cluster).Value() // most slices share a few ids
	case cluster != "" || object.Labels[discoveryv1.LabelManagedBy] != MirroredBy:
		e.skips.Add(InvalidSourceCluster, 1)
	}
	for i := range object.Ports {
		if port := &object.Ports[i]; port.Port != nil { // nil means all ports, which no record can express
			e.ports = appendPort(e.ports, &e.skips, ptr.Deref(port.Name, ""), ptr.Deref(port.Protocol, ""), *port.Port)
		}
	}
	e.readEndpoints(object.Endpoints, zoned, e.readSRV(object.Annotations[AnnotationSRV]))
	return e
}

// readEndpoints packs ready endpoints and endpoints that are serving and terminating. waits reports whether the
// endpoint with an index is waiting; it may be nil.
func (e *Endpoints) readEndpoints(endpoints []discoveryv1.Endpoint, zoned bool, waits func(int) bool) {
	var inState [ready + 1][]*discoveryv1.Endpoint
	for i := range endpoints {
		of := stateOf(endpoints[i].Conditions)
		if of == terminating && waits != nil && waits(i) {
			of = waiting
		}
		inState[of] = append(inState[of], &endpoints[i])
	}
	var hosts []string
	var ends [ready + 1]int
	for of := ready; of > unusable; of-- {
		for _, endpoint := range inState[of] {
			hosts = e.appendEndpoint(endpoint, hosts)
			for zone := ptr.Deref(endpoint.Zone, ""); zoned && len(e.zones) < e.Len(); {
				e.zones = append(e.zones, unique.Make(zone).Value())
			}
		}
		ends[of] = e.Len()
	}
	e.ready, e.waiting = int32(ends[ready]), int32(ends[waiting])
	e.addrs = slices.Clone(e.addrs) // without spare capacity
	some := func(text string) bool { return text != "" }
	if !slices.ContainsFunc(e.zones, some) {
		e.zones = nil
	}
	if slices.ContainsFunc(hosts, some) {
		e.hosts = packHostnames(hosts)
	}
}

// appendEndpoint adds the addresses of an endpoint, and the hostname once per address.
func (e *Endpoints) appendEndpoint(endpoint *discoveryv1.Endpoint, hosts []string) []string {
	host := strings.ToLower(ptr.Deref(endpoint.Hostname, ""))
	if host != "" && !isLabel(host) { // isLabel is slow
		host = ""
	}
	for _, text := range endpoint.Addresses {
		addr, _ := netip.ParseAddr(text)
		if isServiceAddress(addr) && addr.BitLen() == 8*int(e.Size) {
			e.addrs, _ = addr.AppendBinary(e.addrs)
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// condition returns the condition of the endpoint with the ith address.
func (e *Endpoints) condition(i int) condition {
	switch {
	case i < int(e.ready):
		return ready
	case i < int(e.waiting):
		return waiting
	}
	return terminating
}

// condition says how an endpoint can be used. A greater condition is better.
type condition uint8

const (
	unusable condition = iota
	// terminating: serving and terminating; used while no endpoint is ready.
	terminating
	// waiting: terminating because of a policy (AnnotationSRV); SRV answers list it even while others are ready.
	waiting
	// ready: used.
	ready
)

// stateOf returns the condition. If ready is not set, it means true (discovery/v1).
func stateOf(conditions discoveryv1.EndpointConditions) condition {
	switch {
	case ptr.Deref(conditions.Ready, true):
		return ready
	case ptr.Deref(conditions.Serving, false) && ptr.Deref(conditions.Terminating, false):
		return terminating
	default:
		return unusable
	}
}

// hostnames is a packed, immutable list of hostnames. It stores their common prefix once, because replicas of a
// StatefulSet differ only in a few digits.
type hostnames struct {
	text   string   // the prefix, then the rest of each hostname
	ends   []uint32 // end of each hostname in text
	prefix uint8    // length of the prefix
}

// packHostnames packs at least one hostname.
func packHostnames(hosts []string) *hostnames {
	prefix := hosts[0]
	for _, host := range hosts[1:] {
		n := 0
		for n < len(prefix) && n < len(host) && prefix[n] == host[n] {
			n++
		}
		prefix = prefix[:n]
	}
	h := &hostnames{prefix: uint8(len(prefix)), ends: make([]uint32, len(hosts))}
	text := []byte(prefix)
	for i, host := range hosts {
		text = append(text, host[len(prefix):]...)
		h.ends[i] = uint32(len(text))
	}
	h.text = string(text) // without spare capacity
	return h
}

// suffix returns the ith hostname without the prefix.
func (h *hostnames) suffix(i int) string {
	start := uint32(h.prefix)
	if i > 0 {
		start = h.ends[i-1]
	}
	return h.text[start:h.ends[i]]
}

// Append appends the ith hostname.
func (h *hostnames) Append(dst []byte, i int) []byte {
	return append(append(dst, h.text[:h.prefix]...), h.suffix(i)...)
}
