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
	// Refused is called with a service of a member of which none was refused, and with nil when none is any more. Next is
	// called with a service that was refused and has room now. They must not call the IPs.
	Refused func(member string, service *types.NamespacedName)
	Next    func(service types.NamespacedName)

	charged map[types.NamespacedName]string
	waiting map[string]map[types.NamespacedName]bool // what is refused, by the members that want it
}

// NewIPs returns a pool of so many cluster IPs.
func NewIPs(total int, refused func(string, *types.NamespacedName), next func(types.NamespacedName)) *IPs {
	return &IPs{
		Pool: NewPool(total), Refused: refused, Next: next,
		charged: map[types.NamespacedName]string{}, waiting: map[string]map[types.NamespacedName]bool{},
	}
}

// SetMembers replaces the members. Each may be another one than before, and is told again what is refused.
func (i *IPs) SetMembers(members []string) {
	i.Pool.SetMembers(members)
	i.mu.Lock()
	defer i.mu.Unlock()
	for member, services := range i.waiting {
		for service := range services {
			i.Refused(member, &service)
			break
		}
	}
	i.next()
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
	wanted = slices.Sorted(slices.Values(wanted))
	payer := slices.IndexFunc(wanted, i.hasRoom)
	if payer < 0 && len(wanted) > 0 && (admitted || exists) {
		payer = 0
	}
	if payer >= 0 {
		i.charged[service] = wanted[payer]
		i.held[wanted[payer]]++
		wanted = nil
	}
	i.wait(service, wanted)
	i.next()
	return len(wanted) == 0
}

func (i *IPs) hasRoom(member string) bool { return i.room(member) > i.held[member] }

// wait replaces the members for which a service waits.
func (i *IPs) wait(service types.NamespacedName, wanted []string) {
	for member, services := range i.waiting {
		if !services[service] || slices.Contains(wanted, member) {
			continue
		}
		if delete(services, service); len(services) == 0 {
			delete(i.waiting, member)
			i.Refused(member, nil)
		}
	}
	for _, member := range wanted {
		if i.waiting[member] == nil {
			i.waiting[member] = map[types.NamespacedName]bool{}
			i.Refused(member, &service)
		}
		i.waiting[member][service] = true
	}
}

// next tells of one service that has room. The next one follows when it is admitted.
func (i *IPs) next() {
	for member, services := range i.waiting {
		for service := range services {
			if i.hasRoom(member) {
				i.Next(service)
				return
			}
			break
		}
	}
}
