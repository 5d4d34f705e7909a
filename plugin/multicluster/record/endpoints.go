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

// Endpoints is what DNS needs of an EndpointSlice, packed: a block in the order of the slice. It is immutable. Ready endpoints
// come first, then those that wait, which SRV answers have although they are not ready, and then others that are serving and
// terminating. The rest is not kept.
type Endpoints struct {
	Block

	ports          []Port   // as in the slice
	ready, waiting int32    // where these end among the addresses
	skips          Skips    // what was left out
	zones          []string // of the addresses; nil if none is known or kept, as in most slices
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
		e.Cluster = unique.Make(cluster).Value() // most slices have one of a few
	case cluster != "" || object.Labels[discoveryv1.LabelManagedBy] != MirroredBy:
		e.skips.Add(InvalidSourceCluster, 1)
	}
	for i := range object.Ports {
		if port := &object.Ports[i]; port.Port != nil { // else it is all ports: no record can say so
			e.ports = appendPort(e.ports, &e.skips, ptr.Deref(port.Name, ""), ptr.Deref(port.Protocol, ""), *port.Port)
		}
	}
	e.readEndpoints(object.Endpoints, zoned, e.readSRV(object.Annotations[AnnotationSRV]))
	return e
}

// readEndpoints packs the ready endpoints and those that are serving and terminating, of which waits tells by their
// index if they wait. It may be nil.
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

// appendEndpoint adds the addresses of an endpoint, and for each its hostname.
func (e *Endpoints) appendEndpoint(endpoint *discoveryv1.Endpoint, hosts []string) []string {
	host := strings.ToLower(ptr.Deref(endpoint.Hostname, ""))
	if host != "" && !isLabel(host) {
		e.skips.Add(InvalidHostname, 1)
		host = ""
	}
	for _, text := range endpoint.Addresses {
		addr, _ := netip.ParseAddr(text)
		if !isServiceAddress(addr) || addr.BitLen() != 8*int(e.Size) {
			e.skips.Add(InvalidAddress, 1)
			continue
		}
		e.addrs, _ = addr.AppendBinary(e.addrs)
		hosts = append(hosts, host)
	}
	return hosts
}

// condition is that of the endpoint of the ith address.
func (e *Endpoints) condition(i int) condition {
	switch {
	case i < int(e.ready):
		return ready
	case i < int(e.waiting):
		return waiting
	}
	return terminating
}

// condition is how an endpoint can be used. A greater one is better.
type condition uint8

const (
	unusable condition = iota
	// terminating: serving and terminating, used while no endpoint is ready.
	terminating
	// waiting: the same, demoted by a policy; SRV answers have it also while others are ready.
	waiting
	// ready: used.
	ready
)

// stateOf reads conditions. An unset ready means true (discovery/v1).
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

// hostnames is a packed list of hostnames. Their common prefix is stored once: replicas of a StatefulSet differ in a
// few digits. It is immutable.
type hostnames struct {
	text   string   // the prefix, and what follows it in each hostname
	ends   []uint32 // of each hostname in the text
	prefix uint8    // its length
}

// packHostnames packs hostnames, of which there is at least one.
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
	length := len(prefix)
	for i, host := range hosts {
		length += len(host) - len(prefix)
		h.ends[i] = uint32(length)
	}
	var text strings.Builder
	text.Grow(length)
	text.WriteString(prefix)
	for _, host := range hosts {
		text.WriteString(host[len(prefix):])
	}
	h.text = text.String()
	return h
}

// suffix is what follows the prefix in the ith hostname.
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
