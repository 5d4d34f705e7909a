// SPDX-License-Identifier: Apache-2.0

package member

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/budget"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// memory divides the memory for slices among the members. It is safe for concurrent use.
type memory struct {
	total    int // 0 for no limit
	mu       sync.Mutex
	budget   *budget.Budget
	accounts map[string]*account
	// short are the accounts whose last claim was refused, by cluster.
	short map[string]*account
}

func newMemory(total int) *memory {
	return &memory{total: total, budget: budget.New(total), accounts: map[string]*account{}, short: map[string]*account{}}
}

// MemoryLimit returns what all members use of the memory for slices, in bytes. Max is 0 for no limit.
func (s *Members) MemoryLimit() state.Limit {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return state.Limit{Name: "max-import-memory", Used: s.memory.budget.Sum(), Max: s.memory.total}
}

// account is one member's use of a memory. Its methods do nothing once another account has replaced it.
type account struct {
	of      *memory
	cluster string
	held    int
	// short is the amount of the last refused claim.
	short  int
	relist chan<- struct{}
}

// open returns a new account of a member, nil if there is no limit. Until the member's slices are known, it holds the
// weight of their copies. relist receives when a refused claim would be granted.
func (m *memory) open(cluster string, imported func() map[types.NamespacedName]export.Weight,
	relist chan<- struct{},
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
	a := &account{of: m, cluster: cluster, held: max(copies, m.budget.Held(cluster)), relist: relist}
	m.accounts[cluster] = a
	delete(m.short, cluster)
	m.budget.Hold(cluster, a.held)
	return a
}

// setMembers closes the accounts of all other clusters.
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
			delete(m.short, cluster)
			m.budget.Hold(cluster, 0)
		}
	}
	m.wake()
}

// wake signals the accounts whose refused claims would be granted.
func (m *memory) wake() {
	for cluster, a := range m.short {
		if a.short <= m.budget.Room(cluster) {
			delete(m.short, cluster)
			select {
			case a.relist <- struct{}{}:
			default: // a signal already pending covers this change
			}
		}
	}
}

// claim asks for that many bytes in total and reports whether they are granted, until settle or abandon.
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
		a.of.short[a.cluster] = a
		return false
	default:
		a.of.budget.Hold(a.cluster, max(a.held, bytes))
	}
	return true
}

// settle sets what is held and ends all claims.
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
