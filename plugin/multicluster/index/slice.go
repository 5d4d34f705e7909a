// SPDX-License-Identifier: Apache-2.0

package index

import (
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Slice is what DNS needs of an EndpointSlice, packed. It is immutable.
type Slice struct {
	// cluster is the id of the cluster the endpoints are in; empty where the slice does not tell.
	cluster string
	// ports are sorted, each once.
	ports []Port
	// addrs are the addresses in network order, one behind the other: first those of the ready endpoints, then those of
	// the endpoints that are serving and terminating. Others are not kept.
	addrs []byte
	// hosts are the hostnames of the addresses, in the same order: what all begin with, and then the rest of each, each
	// ended by a newline. Empty where no endpoint has a hostname.
	hosts string
	skips *Skips
	// zones are those of the addresses; nil where none is kept, as in most slices.
	zones *zones
	// ready is the number of addresses of ready endpoints.
	ready int32
	// size is the number of octets of an address: 4 or 16.
	size uint8
}

// Len is the number of addresses that can appear in an answer.
func (s *Slice) Len() int { return len(s.addrs) / int(s.size) }

// FromEndpointSlice reads an EndpointSlice and keeps nothing of it. The zones of its endpoints are left out.
func FromEndpointSlice(object *discoveryv1.EndpointSlice) *Slice {
	return fromEndpointSlice(object, false)
}

// FromZonedEndpointSlice is FromEndpointSlice with the zones.
func FromZonedEndpointSlice(object *discoveryv1.EndpointSlice) *Slice {
	return fromEndpointSlice(object, true)
}

func fromEndpointSlice(object *discoveryv1.EndpointSlice, zoned bool) *Slice {
	s := &Slice{size: 4}
	switch object.AddressType {
	case discoveryv1.AddressTypeIPv4:
	case discoveryv1.AddressTypeIPv6:
		s.size = 16
	default:
		skip(&s.skips, InvalidAddressType)
		return s
	}
	switch cluster := object.Labels[mcsv1beta1.LabelSourceCluster]; {
	case isClusterID(cluster):
		s.cluster = strings.Clone(cluster)
	case cluster != "":
		skip(&s.skips, InvalidSourceCluster)
	case !isMirrored(object):
		skip(&s.skips, MissingSourceCluster)
	}
	s.readPorts(object.Ports)
	s.readEndpoints(object.Endpoints, zoned)
	return s
}

func (s *Slice) readPorts(object []discoveryv1.EndpointPort) {
	var ports []Port
	for i := range object {
		from := &object[i]
		if from.Port == nil {
			continue // all ports: no record can say so
		}
		port, ok := portOf(deref(from.Name), deref(from.Protocol), *from.Port)
		if !ok {
			skip(&s.skips, InvalidPort)
			continue
		}
		ports = append(ports, port)
	}
	s.ports = normalPorts(ports)
}

// deref is what p points to, or the zero value.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// readEndpoints packs the ready endpoints and those that are serving and terminating.
func (s *Slice) readEndpoints(endpoints []discoveryv1.Endpoint, zoned bool) {
	count, named := 0, false
	for i := range endpoints {
		endpoint := &endpoints[i]
		if stateOf(endpoint.Conditions) == unusable {
			continue
		}
		count += len(endpoint.Addresses)
		named = named || deref(endpoint.Hostname) != ""
	}
	if count == 0 {
		return
	}
	s.addrs = make([]byte, 0, count*int(s.size))
	var hosts []string
	var places zones
	for _, state := range []state{ready, terminating} {
		for i := range endpoints {
			if endpoint := &endpoints[i]; stateOf(endpoint.Conditions) == state {
				hosts = s.appendEndpoint(endpoint, hosts)
				if zoned {
					places.add(endpoint, s.Len())
				}
			}
		}
		if state == ready {
			s.ready = int32(s.Len())
		}
	}
	s.addrs = slices.Clip(s.addrs)
	if len(places.names) > 1 {
		s.zones = &zones{slices.Clip(places.names), slices.Clip(places.of)}
	}
	if named && len(hosts) > 0 {
		s.hosts = packHosts(hosts)
	}
}

// zones are those of a slice's addresses.
type zones struct {
	names []string // each once; the first is empty, for addresses whose zone is not known
	of    []byte   // by the number of the address
}

// maxZones is how many zones a slice tells apart.
const maxZones = 1 << 8

// add notes the zone of an endpoint for its addresses, which are the last of so many. Zones beyond the limit are left out.
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

// equal tells whether both are the same; nil is none.
func (z *zones) equal(other *zones) bool {
	if z == nil || other == nil {
		return z == other
	}
	return slices.Equal(z.of, other.of) && slices.Equal(z.names, other.names)
}

// zone is that of the ith address, empty where it is not known.
func (s *Slice) zone(i int) string {
	if s.zones == nil {
		return ""
	}
	return s.zones.names[s.zones.of[i]]
}

// packHosts joins hostnames, some of which may be empty.
func packHosts(hosts []string) string {
	prefix := commonPrefix(hosts)
	size := len(prefix) + 1
	for _, host := range hosts {
		size += len(host) - len(prefix) + 1
	}
	var packed strings.Builder
	packed.Grow(size)
	packed.WriteString(prefix)
	packed.WriteByte('\n')
	for _, host := range hosts {
		packed.WriteString(host[len(prefix):])
		packed.WriteByte('\n')
	}
	return packed.String()
}

// appendHosts appends the hostnames of all addresses, as parts of one string. It appends nothing where there are none.
func (s *Slice) appendHosts(hosts []string) []string {
	if s.hosts == "" {
		return hosts
	}
	prefix, rest, _ := strings.Cut(s.hosts, "\n")
	var unpacked strings.Builder
	unpacked.Grow(s.Len()*len(prefix) + len(rest)) // it never moves
	for suffix := range strings.Lines(rest) {
		start := unpacked.Len()
		unpacked.WriteString(prefix)
		unpacked.WriteString(suffix[:len(suffix)-1])
		hosts = append(hosts, unpacked.String()[start:])
	}
	return hosts
}

// appendEndpoint adds the addresses of an endpoint, and for each its hostname.
func (s *Slice) appendEndpoint(endpoint *discoveryv1.Endpoint, hosts []string) []string {
	host := strings.ToLower(deref(endpoint.Hostname))
	if host != "" && !isLabel(host) {
		skip(&s.skips, InvalidHostname)
		host = ""
	}
	for _, text := range endpoint.Addresses {
		addr, err := netip.ParseAddr(text)
		if err != nil || !isServiceAddress(addr) || addr.BitLen() != 8*int(s.size) {
			skip(&s.skips, InvalidAddress)
			continue
		}
		s.addrs = appendAddr(s.addrs, addr)
		hosts = append(hosts, host)
	}
	return hosts
}

func appendAddr(dst []byte, addr netip.Addr) []byte {
	if addr.Is4() {
		octets := addr.As4()
		return append(dst, octets[:]...)
	}
	octets := addr.As16()
	return append(dst, octets[:]...)
}

// Share makes s use the strings and ports of other where they are equal, so that what repeats is stored once. It may
// only be called before s is shared itself.
func (s *Slice) Share(other *Slice) {
	if s.cluster == other.cluster {
		s.cluster = other.cluster
	}
	if slices.Equal(s.ports, other.ports) {
		s.ports = other.ports
	}
	if s.zones != nil && other.zones != nil && slices.Equal(s.zones.names, other.zones.names) {
		s.zones.names = other.zones.names
	}
}

// Equal tells whether two slices give the same answers.
func (s *Slice) Equal(other *Slice) bool {
	return s.cluster == other.cluster && s.size == other.size && s.ready == other.ready &&
		string(s.addrs) == string(other.addrs) && s.hosts == other.hosts && slices.Equal(s.ports, other.ports) &&
		s.zones.equal(other.zones) &&
		equalSkips(s.skips, other.skips)
}

// state is what an endpoint's conditions say of it.
type state uint8

const (
	unusable state = iota
	ready
	terminating // and serving
)

// stateOf reads conditions, where an unset ready means true and an unset serving means ready (discovery/v1).
func stateOf(conditions discoveryv1.EndpointConditions) state {
	isReady := conditions.Ready == nil || *conditions.Ready
	switch {
	case isReady:
		return ready
	case deref(conditions.Serving) && deref(conditions.Terminating):
		return terminating
	default:
		return unusable
	}
}
