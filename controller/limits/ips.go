// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// IPs admits imports to a Pool of cluster IPs, of which each takes one. An import of several members is charged to one
// of them. It is safe for concurrent use.
type IPs struct {
	*Pool
	charged map[types.NamespacedName]string
}

// NewIPs returns a pool of so many cluster IPs.
func NewIPs(total int) *IPs {
	return &IPs{Pool: NewPool(total), charged: map[types.NamespacedName]string{}}
}

// Admit reports whether the import of a service, which members want, may have an IP. One that was admitted before, or
// that exists, always may. Without members the service is forgotten, and needs none.
func (i *IPs) Admit(service types.NamespacedName, wanted []string, exists bool) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	before, admitted := i.charged[service]
	if admitted && slices.Contains(wanted, before) {
		return true
	}
	if admitted {
		delete(i.charged, service)
		i.held[before]--
	}
	if len(wanted) == 0 {
		return true
	}
	wanted = slices.Sorted(slices.Values(wanted))
	payer := slices.IndexFunc(wanted, func(member string) bool { return i.room(member) > i.held[member] })
	if payer < 0 && !admitted && !exists {
		return false
	}
	cluster := wanted[max(0, payer)]
	i.charged[service] = cluster
	i.held[cluster]++
	return true
}
