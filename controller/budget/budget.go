// SPDX-License-Identifier: Apache-2.0

// Package budget divides what one cluster has among the members of its set, so
// that no member can take what the others need.
//
// The package is pure. Its types are not safe for concurrent use.
package budget

// atLeast is the number of guaranteed parts if there are fewer members, so that members that join later have theirs.
const atLeast = 8

// A Budget is an amount that members share. Half of it is guaranteed to them in equal parts; the other half goes to the
// members that ask first. Members keep what they hold: neither another member nor a smaller total takes it away.
type Budget struct {
	total   int
	members map[string]struct{}
	held    map[string]int // positive
	// sum is what all hold together, kept the sum of what is reserved for each.
	sum, kept int
}

// New returns a budget without members of which nothing is held.
func New(total int) *Budget {
	return &Budget{total: total, members: map[string]struct{}{}, held: map[string]int{}}
}

// SetMembers replaces the members. A cluster that is no member keeps what it
// holds until Hold says otherwise, and is guaranteed nothing.
func (b *Budget) SetMembers(members []string) {
	clear(b.members)
	for _, member := range members {
		b.members[member] = struct{}{}
	}
	b.kept = 0
	for member := range b.members {
		b.kept += b.reserved(member)
	}
	for cluster, held := range b.held {
		if _, member := b.members[cluster]; !member {
			b.kept += held
		}
	}
}

// Hold sets what a member holds. It is not checked against the Room.
func (b *Budget) Hold(member string, amount int) {
	b.sum += amount - b.held[member]
	b.kept -= b.reserved(member)
	if amount > 0 {
		b.held[member] = amount
	} else {
		delete(b.held, member)
	}
	b.kept += b.reserved(member)
}

// Held returns what a member holds.
func (b *Budget) Held(member string) int { return b.held[member] }

// Sum returns what all members hold together.
func (b *Budget) Sum() int { return b.sum }

// Room returns the most that a member may hold now: its guaranteed part, or more as long as the guaranteed parts of all
// other members stay free. It is never less than what the member holds.
func (b *Budget) Room(member string) int {
	others := b.sum - b.held[member]
	free := b.total - others
	spare := max(0, atLeast-len(b.members)) * b.guaranteed()
	lent := b.total - (b.kept - b.reserved(member)) - spare
	guaranteed := 0
	if _, found := b.members[member]; found {
		guaranteed = b.guaranteed()
	}
	return max(b.held[member], min(free, max(guaranteed, lent)))
}

// guaranteed is the part of each member.
func (b *Budget) guaranteed() int { return b.total / 2 / max(atLeast, len(b.members)) }

// reserved is what a member holds, or its guaranteed part if that is more.
func (b *Budget) reserved(member string) int {
	if _, found := b.members[member]; found {
		return max(b.held[member], b.guaranteed())
	}
	return b.held[member]
}
