// SPDX-License-Identifier: Apache-2.0

package member

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/budget"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// memory divides the memory that slices of members may take among the members.
// It is safe for concurrent use.
type memory struct {
	total    int // 0 for no limit
	mu       sync.Mutex
	budget   *budget.Budget
	accounts map[string]*account
}

func newMemory(total int) *memory {
	return &memory{total: total, budget: budget.New(total), accounts: map[string]*account{}}
}

// account is what one member takes of a memory. Its methods do nothing once
// another account took its place.
type account struct {
	of      *memory
	cluster string
	held    int
	// short is what a claim that was refused asked for, 0 if none was since the
	// last list.
	short int
	room  chan<- struct{}
}

// open returns a new account of a member, which holds what the copies of its
// slices take until it is known what the member publishes. room receives when a
// claim that was refused has room. It returns nil if there is no limit.
func (m *memory) open(cluster string, imported func() map[types.NamespacedName]export.Weight,
	room chan<- struct{},
) *account {
	if m.total == 0 {
		return nil
	}
	copies := 0
	for _, weight := range imported() {
		copies += weight.Bytes
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a := &account{of: m, cluster: cluster, held: max(copies, m.budget.Held(cluster)), room: room}
	m.accounts[cluster] = a
	m.budget.Hold(cluster, a.held)
	return a
}

// setMembers closes the accounts of all that are no members.
func (m *memory) setMembers(members []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budget.SetMembers(members)
	stay := map[string]bool{}
	for _, member := range members {
		stay[member] = true
	}
	for cluster := range m.accounts {
		if !stay[cluster] {
			delete(m.accounts, cluster)
			m.budget.Hold(cluster, 0)
		}
	}
	m.wake()
}

// wake tells the accounts that have room again.
func (m *memory) wake() {
	for cluster, a := range m.accounts {
		if a.short > 0 && a.short <= m.budget.Room(cluster) {
			a.short = 0
			select {
			case a.room <- struct{}{}:
			default: // one that is due sees this, too
			}
		}
	}
}

// claim asks for so many bytes in all, and reports whether they are granted:
// until settle says what is held in the end.
func (a *account) claim(bytes int) bool {
	if a == nil {
		return true
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	switch {
	case a.of.accounts[a.cluster] != a:
	case bytes > a.of.budget.Room(a.cluster):
		a.short = bytes
		return false
	default:
		a.of.budget.Hold(a.cluster, max(a.held, bytes))
	}
	return true
}

// settle sets what is held, and ends all claims.
func (a *account) settle(bytes int) {
	if a == nil {
		return
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if a.of.accounts[a.cluster] == a {
		less := bytes < a.of.budget.Held(a.cluster)
		a.held = bytes
		a.of.budget.Hold(a.cluster, bytes)
		if less {
			a.of.wake()
		}
	}
}

// abandon ends the claims of a list that failed.
func (a *account) abandon() {
	if a != nil {
		a.of.mu.Lock()
		held := a.held
		a.of.mu.Unlock()
		a.settle(held)
	}
}
