// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// IPs admits imports, each of which takes one cluster IP of a Pool. An import from several members is charged to one of
// them. It is safe for concurrent use.
type IPs struct {
	*Pool
	charged map[types.NamespacedName]string
}

// NewIPs returns a pool with that total of cluster IPs.
func NewIPs(total int) *IPs {
	return &IPs{Pool: NewPool(total), charged: map[types.NamespacedName]string{}}
}

// Admit reports whether the import of a service may have an IP. wanted are the members that export it. An import that was
// admitted before, or that exists, always may. If wanted is empty, the service needs no IP and is forgotten.
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
