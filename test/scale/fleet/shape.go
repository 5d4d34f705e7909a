// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"net/netip"
)

// A Shape is the size of a cluster set. Every service has as many endpoints as any other, the same number in each of
// the clusters that export it; services with an even number are headless, the others have a cluster IP.
type Shape struct {
	// Members is the number of clusters besides the one under test.
	Members int
	// Services and Endpoints are the totals of the set.
	Services, Endpoints int
	// Spread is the number of clusters that export one service.
	Spread int
}

// perSlice is the number of endpoints of a full slice, as the EndpointSlice controller fills it.
const perSlice = 100

// perNamespace is the number of services of one namespace.
const perNamespace = 50

// Validate returns an error for a Shape whose parts are not equal.
func (s Shape) Validate() error {
	switch {
	case s.Members < 1 || s.Services < 1 || s.Spread < 1 || s.Spread > s.Members:
		return fmt.Errorf("%+v: there must be members and services, and no more clusters per service than members", s)
	case s.Endpoints < 1 || s.Endpoints%(s.Services*s.Spread) != 0:
		return fmt.Errorf("%+v: the endpoints must divide evenly among %d services in %d clusters each", s, s.Services,
			s.Spread)
	case s.Members > 1<<16 || s.Endpoints >= changed:
		return fmt.Errorf("%+v: at most %d members and %d endpoints have addresses", s, 1<<16, changed-1)
	}
	return nil
}

// Part is the number of endpoints that one cluster has of a service.
func (s Shape) Part() int { return s.Endpoints / s.Services / s.Spread }

// Slices is the number of published slices in all clusters.
func (s Shape) Slices() int { return s.Services * s.Spread * ((s.Part() + perSlice - 1) / perSlice) }

// Namespaces are those of the services.
func (s Shape) Namespaces() []string {
	var all []string
	for i := 0; i < s.Services; i += perNamespace {
		all = append(all, namespaceOf(i))
	}
	return all
}

// Headless is the number of services without a cluster IP.
func (s Shape) Headless() int { return (s.Services + 1) / 2 }

func headless(service int) bool { return service%2 == 0 }

func namespaceOf(service int) string { return fmt.Sprintf("scale-%d", service/perNamespace) }

func nameOf(service int) string { return fmt.Sprintf("svc-%d", service) }

// servicesOf are the services that a member exports, each with the position of the member among its exporters.
func (s Shape) servicesOf(member int) (all [][2]int) {
	for service := range s.Services {
		if part := (member - service*s.Spread%s.Members + s.Members) % s.Members; part < s.Spread {
			all = append(all, [2]int{service, part})
		}
	}
	return all
}

// changed is the number of the first address that a change gives; those below are given at the beginning.
const changed = 1 << 23

// address is one of 10.0.0.0/8.
func address(number uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(number >> 16), byte(number >> 8), byte(number)})
}

// numberOf is the number of an address that a change gave, or 0 for another address.
func numberOf(ip netip.Addr) uint32 {
	if !ip.Is4() {
		return 0
	}
	b := ip.As4()
	number := uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	if b[0] != 10 || number < changed {
		return 0
	}
	return number - changed
}
