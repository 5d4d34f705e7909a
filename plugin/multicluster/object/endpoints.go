// SPDX-License-Identifier: Apache-2.0

package object

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Endpoints is what DNS needs of an EndpointSlice, packed. It is immutable.
type Endpoints struct {
	// Cluster is the id of the cluster that the endpoints are in, in lower case; empty if unknown.
	Cluster string
	// Ports are sorted, each once.
	Ports []Port
	// Ready is the number of addresses of ready endpoints. They come first, then those of Waiting endpoints, which SRV
	// answers have although they are not ready, and then those of others that are serving and terminating. The rest is
	// not kept.
	Ready, Waiting int32
	// Size is the number of octets of an address: 4 or 16.
	Size uint8
	// SRV is how the endpoints come in SRV answers.
	SRV SRV
	// Skips is what was left out.
	Skips Skips

	addrs []byte    // in network order, one behind the other
	hosts Hostnames // of the addresses; none if no endpoint has one
	zones *zones    // of the addresses; nil if none is known or kept, as in most slices
}

// FromEndpointSlice reads an EndpointSlice, with the zones of its endpoints if zoned is set.
func FromEndpointSlice(object *discoveryv1.EndpointSlice, zoned bool) *Endpoints {
	e := &Endpoints{Size: 4}
	switch object.AddressType {
	case discoveryv1.AddressTypeIPv4:
	case discoveryv1.AddressTypeIPv6:
		e.Size = 16
	default:
		e.Skips.Add(InvalidAddressType, 1)
		return e
	}
	switch cluster := strings.ToLower(object.Labels[mcsv1beta1.LabelSourceCluster]); {
	case IsClusterID(cluster):
		e.Cluster = strings.Clone(cluster)
	case cluster != "":
		e.Skips.Add(InvalidSourceCluster, 1)
	case object.Labels[discoveryv1.LabelManagedBy] != MirroredBy:
		e.Skips.Add(MissingSourceCluster, 1)
	}
	e.readPorts(object.Ports)
	e.readEndpoints(object.Endpoints, zoned, e.readSRV(object.Annotations[AnnotationSRV]))
	return e
}

func (e *Endpoints) readPorts(object []discoveryv1.EndpointPort) {
	var ports []Port
	for i := range object {
		from := &object[i]
		if from.Port == nil {
			continue // all ports: no record can say so
		}
		port, ok := readPort(deref(from.Name), deref(from.Protocol), *from.Port)
		if !ok {
			e.Skips.Add(InvalidPort, 1)
			continue
		}
		ports = append(ports, port)
	}
	e.Ports = SortPorts(ports)
}

// deref is what p points to, or the zero value.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// readEndpoints packs the ready endpoints and those that are serving and terminating, of which waits tells by their
// index if they wait. It may be nil.
func (e *Endpoints) readEndpoints(endpoints []discoveryv1.Endpoint, zoned bool, waits func(int) bool) {
	stateAt := func(i int) state {
		of := stateOf(endpoints[i].Conditions)
		if of == terminating && waits != nil && waits(i) {
			return waiting
		}
		return of
	}
	count, named := 0, false
	for i := range endpoints {
		endpoint := &endpoints[i]
		if stateAt(i) == unusable {
			continue
		}
		count += len(endpoint.Addresses)
		named = named || deref(endpoint.Hostname) != ""
	}
	if count == 0 {
		return
	}
	e.addrs = make([]byte, 0, count*int(e.Size))
	var hosts []string
	var places zones
	for _, state := range []state{ready, waiting, terminating} {
		for i := range endpoints {
			if endpoint := &endpoints[i]; stateAt(i) == state {
				hosts = e.appendEndpoint(endpoint, hosts)
				if zoned {
					places.add(endpoint, e.Len())
				}
			}
		}
		switch state {
		case ready:
			e.Ready = int32(e.Len())
		case waiting:
			e.Waiting = int32(e.Len()) - e.Ready
		}
	}
	e.addrs = slices.Clip(e.addrs)
	if len(places.names) > 1 {
		e.zones = &zones{slices.Clip(places.names), slices.Clip(places.of)}
	}
	if named && len(hosts) > 0 {
		e.hosts = PackHostnames(hosts)
	}
}

// appendEndpoint adds the addresses of an endpoint, and for each its hostname.
func (e *Endpoints) appendEndpoint(endpoint *discoveryv1.Endpoint, hosts []string) []string {
	host := strings.ToLower(deref(endpoint.Hostname))
	if host != "" && !isLabel(host) {
		e.Skips.Add(InvalidHostname, 1)
		host = ""
	}
	for _, text := range endpoint.Addresses {
		addr, err := netip.ParseAddr(text)
		if err != nil || !IsServiceAddress(addr) || addr.BitLen() != 8*int(e.Size) {
			e.Skips.Add(InvalidAddress, 1)
			continue
		}
		e.addrs, _ = addr.AppendBinary(e.addrs)
		hosts = append(hosts, host)
	}
	return hosts
}

// IsReady reports whether the ith address is that of a ready endpoint.
func (e *Endpoints) IsReady(i int) bool { return i < int(e.Ready) }

// IsWaiting reports whether the ith address is that of a Waiting endpoint.
func (e *Endpoints) IsWaiting(i int) bool { return i >= int(e.Ready) && i < int(e.Ready+e.Waiting) }

// Len is the number of addresses.
func (e *Endpoints) Len() int { return len(e.addrs) / int(e.Size) }

// Addr is the ith address.
func (e *Endpoints) Addr(i int) netip.Addr {
	addr, _ := netip.AddrFromSlice(e.addrs[i*int(e.Size) : (i+1)*int(e.Size)])
	return addr
}

// AppendHosts appends the hostnames of all addresses, some of which may be empty. It appends nothing if all are.
func (e *Endpoints) AppendHosts(hosts []string) []string { return e.hosts.AppendTo(hosts) }

// Zone is that of the ith address; empty if unknown.
func (e *Endpoints) Zone(i int) string {
	if e.zones == nil {
		return ""
	}
	return e.zones.names[e.zones.of[i]]
}

// Share makes e use the strings and ports of other if they are equal, so that they are stored once. It may only be
// called before e is shared itself.
func (e *Endpoints) Share(other *Endpoints) {
	if e.Cluster == other.Cluster {
		e.Cluster = other.Cluster
	}
	if slices.Equal(e.Ports, other.Ports) {
		e.Ports = other.Ports
	}
	if e.zones != nil && other.zones != nil && slices.Equal(e.zones.names, other.zones.names) {
		e.zones.names = other.zones.names
	}
}

// Equal reports whether both give the same answers.
func (e *Endpoints) Equal(other *Endpoints) bool {
	return e.Cluster == other.Cluster && e.Size == other.Size && e.Ready == other.Ready &&
		e.Waiting == other.Waiting && e.SRV == other.SRV &&
		string(e.addrs) == string(other.addrs) && e.hosts.Equal(&other.hosts) && slices.Equal(e.Ports, other.Ports) &&
		e.zones.equal(other.zones) && maps.Equal(e.Skips, other.Skips)
}

// zones are those of a slice's addresses.
type zones struct {
	names []string // each once; the first is empty, for addresses whose zone is unknown
	of    []byte   // by the number of the address
}

// maxZones is the number of zones that a slice tells apart.
const maxZones = 1 << 8

// add notes the zone of an endpoint for its addresses, which are the last ones. Zones beyond the limit are left out.
func (z *zones) add(endpoint *discoveryv1.Endpoint, addresses int) {
	if len(z.names) == 0 {
		z.names = append(z.names, "")
	}
	zone := deref(endpoint.Zone)
	at := slices.Index(z.names, zone)
	switch {
	case at < 0 && len(z.names) < maxZones:
		at = len(z.names)
		z.names = append(z.names, strings.Clone(zone))
	case at < 0:
		at = 0
	}
	for len(z.of) < addresses {
		z.of = append(z.of, byte(at))
	}
}

func (z *zones) equal(other *zones) bool {
	if z == nil || other == nil {
		return z == other
	}
	return slices.Equal(z.of, other.of) && slices.Equal(z.names, other.names)
}

// state is what the conditions of an endpoint say.
type state uint8

const (
	unusable state = iota
	ready
	waiting     // demoted by a policy: as terminating, and listed by SRV also while others are ready
	terminating // and serving
)

// stateOf reads conditions. An unset ready means true (discovery/v1).
func stateOf(conditions discoveryv1.EndpointConditions) state {
	switch {
	case conditions.Ready == nil || *conditions.Ready:
		return ready
	case deref(conditions.Serving) && deref(conditions.Terminating):
		return terminating
	default:
		return unusable
	}
}
