// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// fewest is the minimum number of reserved parts, so that members that join later find theirs free.
const fewest = 8

// A Pool is an amount that members share. Half of it is reserved for them in equal parts; the other half goes to the
// members that ask first. Members keep what they hold: neither another member nor a smaller total takes it away. It is
// safe for concurrent use.
type Pool struct {
	total int

	mu      sync.Mutex
	members map[string]bool
	held    map[string]int // by cluster, even if it is not a member
}

// NewPool returns a pool without members and with nothing in use.
func NewPool(total int) *Pool {
	return &Pool{total: total, members: map[string]bool{}, held: map[string]int{}}
}

// SetMembers replaces the members. Nothing is reserved for other clusters.
func (p *Pool) SetMembers(members []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.members)
	for _, member := range members {
		p.members[member] = true
	}
}

// Use returns the amount that is in use, and the total.
func (p *Pool) Use() (used, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, held := range p.held {
		used += held
	}
	return used, p.total
}

// Hold sets the amount that a member holds, without a check.
func (p *Pool) Hold(member string, amount int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[member] = amount
}

// Claim reports whether a member may hold that amount in total. If so, the member holds at least that much now.
func (p *Pool) Claim(member string, amount int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if amount > p.room(member) {
		return false
	}
	p.held[member] = max(p.held[member], amount)
	return true
}

// room returns the most that a member may hold now: its reserved part, or more as long as the reserved parts of all other
// members stay free. It is never less than what the member holds.
func (p *Pool) room(member string) int {
	part := p.total / 2 / max(fewest, len(p.members))
	free, lent := p.total, p.total-part*max(0, fewest-len(p.members))
	for other, held := range p.held {
		if other != member {
			free -= held
			lent -= held
		}
	}
	for other := range p.members {
		if other != member {
			lent -= max(0, part-p.held[other])
		}
	}
	if !p.members[member] {
		part = 0
	}
	return max(p.held[member], min(free, max(part, lent)))
}

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
	payer := slices.IndexFunc(wanted, func(member string) bool { return i.room(member) > i.held[member] })
	if payer < 0 && !admitted && !exists {
		return false
	}
	cluster := wanted[max(0, payer)]
	i.charged[service] = cluster
	i.held[cluster]++
	return true
}
