// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/miekg/dns"
)

// Index publishes the services of a clusterset. Any number of goroutines may look up names while one updates it. An
// update costs the same however many other services there are.
type Index struct {
	config *Config
	state  atomic.Pointer[State]

	updating sync.Mutex // locked while the fields below are changed or walked
	// reading is locked for one map access at a time, see get. Keys are in lower case. A map under a lock reads less
	// memory than a sync.Map: with 10,000 services a reply costs half as much.
	reading    sync.RWMutex
	services   map[string]*Service
	namespaces map[string]int      // number of existing services per namespace, never 0
	reverse    map[string][]string // names per address, whose key is its octets; see reverse.go
}

// State describes the served services as a whole. It is immutable.
type State struct {
	// Serial is the serial of the SOA records.
	Serial uint32

	soa [][]dns.RR // indexed like Config.Zones
}

// SOA returns the SOA record of the zone with this index. It is shared and must not be changed.
func (s *State) SOA(zone int) []dns.RR { return s.soa[zone] }

// NewIndex returns an index that has no state before its first update.
func NewIndex(config *Config) *Index {
	return &Index{
		config: config, services: make(map[string]*Service), namespaces: make(map[string]int),
		reverse: make(map[string][]string),
	}
}

// State returns the current state, or nil before the first update.
func (x *Index) State() *State { return x.state.Load() }

// Update publishes the new states of services by key; nil removes a service. The state changes if and only if an answer
// changed: its serial is now, or the next number if now is not greater (RFC 1982).
func (x *Index) Update(now uint32, changes map[string]*Service) {
	x.updating.Lock()
	defer x.updating.Unlock()
	before := x.state.Load()
	moved := before == nil
	for key, service := range changes {
		moved = x.apply(key, service) || moved
	}
	if !moved {
		return
	}
	if before != nil && int32(now-before.Serial) <= 0 {
		now = before.Serial + 1
	}
	x.state.Store(&State{now, makeSOA(x.config, now)})
}

// none is the state of a service that does not exist.
var none = new(Service)

// apply changes one service and reports whether an answer changed.
func (x *Index) apply(key string, service *Service) (moved bool) {
	before, after := cmp.Or(x.services[key], none), cmp.Or(service, none)
	set(x, x.services, key, service, service != nil)
	if x.config.Reverse > 0 {
		x.changeReverse(before, after)
	}
	if before.Exists == after.Exists {
		return after.Exists && !before.answersAs(after)
	}
	_, namespace, _ := strings.Cut(key, ".")
	count := x.namespaces[namespace] - 1 // the namespace exists in DNS while any of its services does
	if after.Exists {
		count += 2
	}
	set(x, x.namespaces, namespace, count, count > 0)
	return true
}

// Skips counts what was left out, in time proportional to the services. Updates wait for it, queries do not.
func (x *Index) Skips() (all Skips) {
	x.updating.Lock()
	defer x.updating.Unlock()
	for _, service := range x.services {
		all.AddAll(service.Skips)
	}
	return all
}

// Find returns the service of a name of kind Namespace or deeper. If it returns nil, q.Answer is complete.
func (x *Index) Find(q *Question) *Service {
	service := get(x, x.services, q.Request.Key)
	if service == nil && q.Request.Kind == KindNamespace && get(x, x.namespaces, q.Request.Namespace) > 0 {
		q.Answer.Result = Empty
	}
	return service
}

// Snapshot returns the current state, and the records of the zone with this index at the same moment, sorted: by
// service key, and PTR records by address. The records may be shared and must not be changed.
func (x *Index) Snapshot(zone int) (*State, iter.Seq[[]dns.RR]) {
	x.updating.Lock()
	defer x.updating.Unlock()
	if x.config.IsReverse(zone) {
		return x.State(), sorted(x.reverse, func(octets string, names []string) []dns.RR {
			addr, _ := netip.AddrFromSlice([]byte(octets))
			owner, err := dns.ReverseAddr(addr.String())
			if err != nil || !dns.IsSubDomain(x.config.Zones[zone], owner) {
				return nil
			}
			return x.pointer(owner, names)
		})
	}
	return x.State(), sorted(x.services, func(_ string, s *Service) []dns.RR { return s.Records(zone) })
}

// get returns the value of a key in a map of the index, or the zero value.
func get[V any](x *Index, values map[string]V, key string) V {
	x.reading.RLock()
	defer x.reading.RUnlock()
	return values[key]
}

// set sets the value of a key in a map of the index; without keep it removes the key.
func set[V any](x *Index, values map[string]V, key string, value V, keep bool) {
	x.reading.Lock()
	defer x.reading.Unlock()
	if keep {
		values[key] = value
	} else {
		delete(values, key)
	}
}

// sorted returns the records of all current values, in the order of the keys.
func sorted[V any](values map[string]V, records func(key string, value V) []dns.RR) iter.Seq[[]dns.RR] {
	values = maps.Clone(values)
	return func(yield func([]dns.RR) bool) {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if some := records(key, values[key]); len(some) > 0 && !yield(some) {
				return
			}
		}
	}
}
