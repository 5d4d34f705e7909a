// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Claims admit services to a Budget, of which each service takes one. A
// service that several members want is charged to one of them.
type Claims struct {
	budget  *Budget
	charged map[types.NamespacedName]string
	// refused are the services that found no room, with the members that want
	// each; waiting are the same by member, sorted.
	refused map[types.NamespacedName][]string
	waiting map[string][]types.NamespacedName
}

// NewClaims returns claims on a budget of that total, without any member.
func NewClaims(total int) *Claims {
	return &Claims{
		budget:  New(total),
		charged: map[types.NamespacedName]string{},
		refused: map[types.NamespacedName][]string{},
		waiting: map[string][]types.NamespacedName{},
	}
}

// SetMembers replaces the members.
func (c *Claims) SetMembers(members []string) { c.budget.SetMembers(members) }

// Admit reports whether a service is admitted. It is charged to one of the members that want it, of which there is at
// least one and none twice. A service that was admitted before, or that exists already, is always admitted.
func (c *Claims) Admit(service types.NamespacedName, wanted []string, exists bool) bool {
	before, admitted := c.charged[service]
	if admitted && slices.Contains(wanted, before) {
		return true
	}
	c.uncharge(service)
	c.unrefuse(service)
	// The member with most room left pays: a member with many services does not use up the room of one with few.
	best := slices.MaxFunc(slices.Sorted(slices.Values(wanted)),
		func(a, b string) int { return cmp.Compare(c.left(a), c.left(b)) })
	if c.left(best) < 1 && !admitted && !exists {
		c.refuse(service, wanted)
		return false
	}
	c.charged[service] = best
	c.budget.Hold(best, c.budget.Held(best)+1)
	return true
}

// Release forgets a service. No member is charged for it any more.
func (c *Claims) Release(service types.NamespacedName) {
	c.uncharge(service)
	c.unrefuse(service)
}

// Next returns a refused service that would be admitted now: the first by name
// of the member that holds least. There is none if no refused service has room.
func (c *Claims) Next() (next types.NamespacedName, any bool) {
	fewest := 0
	for member, waiting := range c.waiting {
		held := c.budget.Held(member)
		if c.left(member) >= 1 && (!any || held < fewest || held == fewest && compare(waiting[0], next) < 0) {
			next, any, fewest = waiting[0], true, held
		}
	}
	return next, any
}

// Refused returns the first refused service that a member wants. There is none if all that it wants is admitted.
func (c *Claims) Refused(member string) (first types.NamespacedName, any bool) {
	if waiting := c.waiting[member]; len(waiting) > 0 {
		return waiting[0], true
	}
	return first, false
}

// Waiting reports whether any service is refused.
func (c *Claims) Waiting() bool { return len(c.refused) > 0 }

// Admitted returns the number of services that are admitted.
func (c *Claims) Admitted() int { return len(c.charged) }

// left is how many more services a member may be charged for.
func (c *Claims) left(member string) int { return c.budget.Room(member) - c.budget.Held(member) }

func (c *Claims) uncharge(service types.NamespacedName) {
	if member, charged := c.charged[service]; charged {
		delete(c.charged, service)
		c.budget.Hold(member, c.budget.Held(member)-1)
	}
}

func (c *Claims) refuse(service types.NamespacedName, wanted []string) {
	c.refused[service] = slices.Clone(wanted)
	for _, member := range wanted {
		at, _ := slices.BinarySearchFunc(c.waiting[member], service, compare)
		c.waiting[member] = slices.Insert(c.waiting[member], at, service)
	}
}

func (c *Claims) unrefuse(service types.NamespacedName) {
	for _, member := range c.refused[service] {
		if at, found := slices.BinarySearchFunc(c.waiting[member], service, compare); found {
			c.waiting[member] = slices.Delete(c.waiting[member], at, at+1)
		}
		if len(c.waiting[member]) == 0 {
			delete(c.waiting, member)
		}
	}
	delete(c.refused, service)
}

func compare(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
