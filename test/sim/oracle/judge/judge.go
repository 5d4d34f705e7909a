// SPDX-License-Identifier: Apache-2.0

// Package judge holds the answers of DNS servers against all that happened in a clusterset, while it happens.
//
// Its callers report every change before and after they write it, every fault before it begins and after it is healed,
// the copies and IPs in each cluster, and every answer. Uncertainty counts in favor of the answer: it is wrong only if no
// order of events makes it right.
//
// It is pure but for a lock: all times are told to it.
package judge

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle/truth"
)

// A State is what one cluster has of one service.
type State struct {
	// Exported tells that there is a ServiceExport.
	Exported bool
	// Present tells that there is a Service.
	Present bool
	// Endpoints are those of the Service.
	Endpoints []truth.Endpoint
}

// healthy is an export with a ready endpoint.
func (s State) healthy() bool {
	return s.Exported && s.Present && slices.ContainsFunc(s.Endpoints, func(e truth.Endpoint) bool { return e.Ready })
}

// addresses are those that an answer may hold.
func (s State) addresses() []netip.Addr {
	if !s.Exported || !s.Present {
		return nil
	}
	var addresses []netip.Addr
	for _, endpoint := range s.Endpoints {
		if endpoint.Ready || endpoint.Serving && endpoint.Terminating {
			addresses = append(addresses, endpoint.Address)
		}
	}
	return addresses
}

// A Way leads from the objects of one cluster to the answers of another, or of the same.
type Way struct{ From, To string }

// Into returns the ways that end in a cluster.
func Into(cluster string, all []string) (ways []Way) {
	for _, from := range all {
		ways = append(ways, Way{From: from, To: cluster})
	}
	return ways
}

// Of returns the ways that begin or end in a cluster.
func Of(cluster string, all []string) []Way {
	ways := Into(cluster, all)
	for _, to := range all {
		if to != cluster {
			ways = append(ways, Way{From: cluster, To: to})
		}
	}
	return ways
}

// Abroad returns the ways from a cluster to the others.
func Abroad(cluster string, all []string) []Way {
	return slices.DeleteFunc(Of(cluster, all), func(way Way) bool { return way.From != cluster || way.To == cluster })
}

// Figures say how much was judged.
type Figures struct {
	// Queries are all, and Owed those that had to be answered.
	Queries, Owed int
	// Addresses are those in answers, and Bounded those of them that had been
	// withdrawn and were looked at for how long ago.
	Addresses, Bounded int
	// Unanswered are the queries that got no answer, or SERVFAIL, and were not
	// owed one: the server was down, or had only begun.
	Unanswered int
}

// Add adds those of another judge.
func (f *Figures) Add(other Figures) {
	f.Queries += other.Queries
	f.Owed += other.Owed
	f.Addresses += other.Addresses
	f.Bounded += other.Bounded
	f.Unanswered += other.Unanswered
}

// forever is the end of what has none yet.
var forever = time.Unix(1<<40, 0)

type key struct{ cluster, name string }

// An export is one cluster's word of a service, over time.
type export struct {
	// healthy tells that there is, and will be until it is told otherwise, a
	// ready endpoint; period counts how often that began.
	healthy bool
	period  int
	// since is when the present period had begun for certain, zero before.
	since time.Time
	// until is how long there may have been a ServiceExport.
	until time.Time
}

// An address is one that a cluster exported for a service.
type address struct {
	cluster string
	period  int       // of the export, when it was first published
	until   time.Time // how long it may have been published
	// ready tells that the endpoint is ready, and will be until it is told otherwise; since is when that had begun for
	// certain, zero before. broken tells that it was ready before and then was not: a copy may be of then.
	ready, broken bool
	since         time.Time
}

type proof struct {
	period int
	at     time.Time
}

// A reader is a cluster whose DNS server is asked.
type reader struct {
	// copies are periods that objects in the reader show; known those that answers show.
	copies, known map[key]proof
	// held are the addresses, by service, that the reader must keep: it held a copy while the endpoint was ready. dark
	// is since when it has no ready endpoint of a service although it holds one that is ready at its source.
	held   map[string]map[netip.Addr]bool
	dark   map[string]time.Time
	ips    map[string]map[netip.Addr]ip
	doubts []doubt
	// started is when the DNS server was started last, serving when it answered first since, zero before.
	started, serving time.Time
}

type ip struct{ from, until time.Time }

// A doubt is an address that may turn out to be the IP of an import.
type doubt struct {
	name    string
	address netip.Addr
	wrong   string
}

type way struct {
	blocked int
	clear   time.Time
}

// A Judge judges. It is safe for concurrent use.
type Judge struct {
	bound    time.Duration
	clusters []string

	mu        sync.Mutex
	exports   map[key]*export
	addresses map[string]map[netip.Addr]*address
	ways      map[Way]*way
	readers   map[string]*reader
	figures   Figures
}

// New returns a judge to whom all ways are clear since now. bound is how long a
// change may take over a way that is clear.
func New(now time.Time, bound time.Duration, clusters ...string) *Judge {
	j := &Judge{
		bound: bound, clusters: clusters,
		exports: map[key]*export{}, addresses: map[string]map[netip.Addr]*address{},
		ways: map[Way]*way{}, readers: map[string]*reader{},
	}
	for _, from := range clusters {
		j.readers[from] = &reader{ips: map[string]map[netip.Addr]ip{}, started: now}
		j.forget(from)
		for _, to := range clusters {
			j.ways[Way{from, to}] = &way{clear: now}
		}
	}
	return j
}

// Change is told before a cluster's word of a service changes. The function
// that it returns is to be called once the change is written.
func (j *Judge) Change(cluster, name string, next State, now time.Time) (written func(time.Time)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.exports[key{cluster, name}]
	if e == nil {
		e = &export{}
		j.exports[key{cluster, name}] = e
	}
	if next.Exported {
		e.until = forever
	}
	switch {
	case !next.healthy():
		e.healthy = false
	case !e.healthy:
		e.healthy, e.since = true, time.Time{}
		e.period++
	}
	if j.addresses[name] == nil {
		j.addresses[name] = map[netip.Addr]*address{}
	}
	published := next.addresses()
	for _, each := range published {
		known := j.addresses[name][each]
		if known == nil {
			known = &address{cluster: cluster, period: e.period}
			j.addresses[name][each] = known
		}
		known.until = forever
	}
	j.readiness(cluster, name, next)
	return func(now time.Time) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if e.healthy && e.since.IsZero() {
			e.since = now
		}
		if !next.Exported && e.until.Equal(forever) {
			e.until = now
		}
		for each, known := range j.addresses[name] {
			if known.cluster == cluster && known.until.Equal(forever) && !slices.Contains(published, each) {
				known.until = now
			}
			if known.cluster == cluster && known.ready && known.since.IsZero() {
				known.since = now
			}
		}
	}
}

// Block is told before something blocks the ways.
func (j *Judge) Block(ways ...Way) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, each := range ways {
		j.ways[each].blocked++
	}
}

// Clear is told once it is gone.
func (j *Judge) Clear(now time.Time, ways ...Way) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, each := range ways {
		w := j.ways[each]
		w.blocked--
		w.clear = now
	}
}

// ClearSince tells whether a way is clear, and was at that time.
func (j *Judge) ClearSince(from, to string, at time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.clearSince(from, to, at)
}

func (j *Judge) clearSince(from, to string, at time.Time) bool {
	w := j.ways[Way{from, to}]
	return w.blocked == 0 && !w.clear.After(at)
}

// Ends is told before the DNS server of a cluster is ended.
func (j *Judge) Ends(cluster string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.readers[cluster].started, j.readers[cluster].serving = forever, time.Time{}
}

// Starts is told before the DNS server of a cluster is started.
func (j *Judge) Starts(cluster string, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.readers[cluster].started, j.readers[cluster].serving = now, time.Time{}
}

// SeesCopy reports the endpoints of a service of cluster `of` that cluster `in` has.
func (j *Judge) SeesCopy(in, of, name string, endpoints []netip.Addr, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.exports[key{of, name}]
	if e == nil || !e.healthy {
		return
	}
	for _, each := range endpoints {
		if known := j.addresses[name][each]; known != nil && known.cluster == of && known.period == e.period {
			note(j.readers[in].copies, key{of, name}, e.period, now)
		}
	}
}

// SeesIPs reports the IPs of an import, none if it is gone.
func (j *Judge) SeesIPs(in, name string, ips []netip.Addr, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.readers[in]
	if r.ips[name] == nil {
		r.ips[name] = map[netip.Addr]ip{}
	}
	for each, known := range r.ips[name] {
		if known.until.Equal(forever) && !slices.Contains(ips, each) {
			known.until = now
			r.ips[name][each] = known
		}
	}
	for _, each := range ips {
		if known, ok := r.ips[name][each]; !ok || !known.until.Equal(forever) {
			r.ips[name][each] = ip{from: now, until: forever}
		}
		r.doubts = slices.DeleteFunc(r.doubts, func(d doubt) bool { return d.name == name && d.address == each })
	}
}

// note keeps the first proof of a period.
func note(proofs map[key]proof, of key, period int, at time.Time) {
	if proofs[of].period != period {
		proofs[of] = proof{period, at}
	}
}

// Figures are those so far.
func (j *Judge) Figures() Figures {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.figures
}

// Unproven are the answers with an address that no import was seen to have. Once
// all that happened was seen, they are wrong.
func (j *Judge) Unproven() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var wrong []string
	for _, cluster := range j.clusters {
		for _, each := range j.readers[cluster].doubts {
			wrong = append(wrong, each.wrong)
		}
	}
	return wrong
}

func (j *Judge) describe(name, cluster string) string {
	e := j.exports[key{cluster, name}]
	if e == nil {
		return fmt.Sprintf("%s never exported it", cluster)
	}
	return fmt.Sprintf("%s: healthy %v, period %d since %s", cluster, e.healthy, e.period, e.since.Format(clockFormat))
}

const clockFormat = "15:04:05.000"
