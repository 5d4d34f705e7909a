// SPDX-License-Identifier: Apache-2.0

package record

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// Index publishes the services of a clusterset. Any number of goroutines may look names up while one updates it.
// Building a service costs what the service costs, however many other services there are.
type Index struct {
	config *Config
	state  atomic.Pointer[State]

	updating   sync.Mutex // held while what follows is changed or walked
	services   table[*Service]
	namespaces table[int]      // the number of existing services in each that has some
	reverse    table[[]string] // the names of each address, by its octets, see reverse.go
	skips      object.Skips
}

// State is what an index serves as a whole. It is immutable.
type State struct {
	// Serial is that of the SOA records.
	Serial uint32
	// Outdated is closed once the index has another serial.
	Outdated <-chan struct{}
	// Totals counts what is served.
	Totals Totals

	outdated chan struct{}
	soa      [][]dns.RR // by the number of the zone
}

// Totals counts what an index holds.
type Totals struct {
	// ClusterSetIP and Headless are the numbers of services that exist in DNS.
	ClusterSetIP, Headless int
	// Skips is what was left out.
	Skips object.Skips
}

// SOA is the SOA record of the zone with that number. It is shared and must not be changed.
func (s *State) SOA(zone int) []dns.RR { return s.soa[zone] }

// NewIndex makes an index that has no state before its first update.
func NewIndex(config *Config) *Index { return &Index{config: config} }

// State is the present state, or nil before the first update.
func (x *Index) State() *State { return x.state.Load() }

// Update publishes the new states of services by their keys; nil is one that is gone. The serial moves if and only if an
// answer changed: to now, or to the next number if now is not greater (RFC 1982).
func (x *Index) Update(now uint32, changes map[string]*Service) {
	x.updating.Lock()
	defer x.updating.Unlock()
	before := x.state.Load()
	next := new(State)
	if before != nil {
		*next = *before
	}
	moved := before == nil
	for key, service := range changes {
		moved = x.apply(key, service, &next.Totals) || moved
	}
	next.Totals.Skips = maps.Clone(x.skips)
	if moved {
		if before == nil || int32(now-before.Serial) > 0 {
			next.Serial = now
		} else {
			next.Serial++
		}
		next.soa = makeSOA(x.config, next.Serial)
		next.outdated = make(chan struct{})
		next.Outdated = next.outdated
	}
	x.state.Store(next)
	if moved && before != nil {
		close(before.outdated)
	}
}

// apply changes one service and reports whether an answer changed.
func (x *Index) apply(key string, after *Service, totals *Totals) (moved bool) {
	before := x.services.get(key)
	if before != nil {
		x.count(totals, before, -1)
	}
	if after != nil {
		x.services.set(key, after)
		x.count(totals, after, +1)
	} else {
		x.services.remove(key)
	}
	if len(x.config.Reverse) > 0 {
		x.changeReverse(before, after)
	}
	existed, exists := before != nil && before.Exists, after != nil && after.Exists
	if existed != exists {
		_, namespace, _ := strings.Cut(key, ".")
		count := x.namespaces.get(namespace)
		switch { // it exists in DNS as long as one of its services does
		case exists:
			x.namespaces.set(namespace, count+1)
		case count > 1:
			x.namespaces.set(namespace, count-1)
		default:
			x.namespaces.remove(namespace)
		}
		return true
	}
	return exists && !before.answersAs(after)
}

// count adds the service to the totals, or takes it away.
func (x *Index) count(totals *Totals, service *Service, sign int) {
	switch {
	case !service.Exists:
	case service.Import.Headless:
		totals.Headless += sign
	default:
		totals.ClusterSetIP += sign
	}
	x.skips.AddAll(service.Skips, sign)
}

// Find returns the service of a name of kind Namespace or deeper. If there is none, the answer is complete.
func (x *Index) Find(q *Question) *Service {
	service := x.services.getFold(q.Request.Key)
	if service == nil && q.Request.Kind == KindNamespace && x.namespaces.getFold(q.Request.Namespace) > 0 {
		q.Answer.Result = Empty
	}
	return service
}

// Snapshot is the present state and the records in the zone with that number at the same moment, sorted: those of
// services by their keys, and PTR records by address. The records may be shared and must not be changed.
func (x *Index) Snapshot(zone int) (*State, iter.Seq[[]dns.RR]) {
	x.updating.Lock()
	defer x.updating.Unlock()
	if reverse := zone - len(x.config.Zones); reverse >= 0 {
		return x.State(), sorted(&x.reverse, func(octets string, names []string) []dns.RR {
			addr, _ := netip.AddrFromSlice([]byte(octets))
			owner, err := dns.ReverseAddr(addr.String())
			if err != nil || !dns.IsSubDomain(x.config.Reverse[reverse], owner) {
				return nil
			}
			return x.pointer(owner, names)
		})
	}
	return x.State(), sorted(&x.services, func(_ string, s *Service) []dns.RR { return s.Records(zone) })
}

// table is a map that any number of goroutines may read while one changes it. Its keys are in lower case. A lookup
// reads less memory than one in a sync.Map: among 10,000 services the reply costs half as much.
type table[V any] struct {
	mu     sync.RWMutex // held for one key at a time
	values map[string]V
}

// get returns the value of the key, or the zero value.
func (t *table[V]) get(key string) V {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.values[key]
}

// getFold is get for a key in any case.
func (t *table[V]) getFold(key string) V {
	t.mu.RLock()
	value, ok := t.values[key]
	t.mu.RUnlock()
	if lower := strings.ToLower(key); !ok && lower != key {
		return t.get(lower)
	}
	return value
}

// set gives the key a value.
func (t *table[V]) set(key string, value V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values == nil {
		t.values = make(map[string]V)
	}
	t.values[key] = value
}

// remove removes the key, if the table has it.
func (t *table[V]) remove(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.values, key)
}

// sorted are the records of all values at this moment, in the order of the keys.
func sorted[V any](t *table[V], records func(key string, value V) []dns.RR) iter.Seq[[]dns.RR] {
	t.mu.RLock()
	defer t.mu.RUnlock()
	values := maps.Clone(t.values)
	return func(yield func([]dns.RR) bool) {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if some := records(key, values[key]); len(some) > 0 && !yield(some) {
				return
			}
		}
	}
}
