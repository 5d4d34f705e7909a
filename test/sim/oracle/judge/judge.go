// SPDX-License-Identifier: Apache-2.0

// Package judge holds the answers of the DNS server of a cluster against all that happened in its clusterset, while it
// happens.
//
// Its callers report every change once it is written, every fault before it begins and after it is healed, the copies and
// IPs in the cluster, and every answer, in this order. Uncertainty counts in favor of the answer.
//
// It is pure: all times are told to it.
package judge

import (
	"fmt"
	"net/netip"
	"slices"
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

// forever is the end of what has none yet.
var forever = time.Unix(1<<40, 0)

type key struct{ cluster, name string }

// An export is one cluster's word of a service, over time.
type export struct {
	// healthy tells that there is, and will be until it is told otherwise, a
	// ready endpoint; period counts how often that began.
	healthy bool
	period  int
	// since is when the present period began.
	since time.Time
	// until is how long there may have been a ServiceExport.
	until time.Time
}

// An address is one that a cluster exported for a service.
type address struct {
	cluster string
	period  int       // of the export, when it was first published
	until   time.Time // how long it may have been published
	// ready tells that the endpoint is ready, and will be until it is told otherwise; since is when that began. broken
	// tells that it was ready before and then was not: a copy may be of then.
	ready, broken bool
	since         time.Time
}

type proof struct {
	period int
	at     time.Time
}

type way struct {
	blocked int
	clear   time.Time
}

// A Judge judges what one cluster has and answers, the reader.
type Judge struct {
	reader   string
	bound    time.Duration
	clusters []string

	exports   map[key]*export
	addresses map[string]map[netip.Addr]*address
	ways      map[string]*way // to the reader, by where they begin

	// copies are periods that objects in the reader show; proved those that answers show.
	copies, proved map[key]proof
	// held are the addresses, by service, that the reader must keep: it held a copy while the endpoint was ready. dark
	// is since when it has no ready endpoint of a service although it holds one that is ready at its source.
	held   map[string]map[netip.Addr]bool
	dark   map[string]time.Time
	serves bool // the DNS server has answered since it was started
	// ips are those that imports had, by service, and until when.
	ips map[string]map[netip.Addr]time.Time
}

// New returns a judge to whom all ways are clear since now. bound is how long a
// change may take over a way that is clear.
func New(now time.Time, bound time.Duration, reader string, clusters ...string) *Judge {
	j := &Judge{
		reader: reader, bound: bound, clusters: clusters, exports: map[key]*export{},
		addresses: map[string]map[netip.Addr]*address{}, ways: map[string]*way{}, ips: map[string]map[netip.Addr]time.Time{},
	}
	j.Forget()
	for _, from := range clusters {
		j.ways[from] = &way{clear: now}
	}
	return j
}

// Change is told once a cluster's word of a service has changed.
func (j *Judge) Change(cluster, name string, next State, now time.Time) {
	e := j.exports[key{cluster, name}]
	if e == nil {
		e = &export{}
		j.exports[key{cluster, name}] = e
	}
	switch {
	case next.Exported:
		e.until = forever
	case e.until.Equal(forever):
		e.until = now
	}
	switch {
	case !next.healthy():
		e.healthy = false
	case !e.healthy:
		e.healthy, e.since = true, now
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
	for each, known := range j.addresses[name] {
		if known.cluster == cluster && known.until.Equal(forever) && !slices.Contains(published, each) {
			known.until = now
		}
	}
	j.readiness(cluster, name, next, now)
}

// Block is told before something blocks the way from a cluster.
func (j *Judge) Block(from string) { j.ways[from].blocked++ }

// Clear is told once it is gone.
func (j *Judge) Clear(now time.Time, from string) {
	j.ways[from].blocked--
	j.ways[from].clear = now
}

// ClearSince tells whether the way from a cluster is clear, and was at that time.
func (j *Judge) ClearSince(from string, at time.Time) bool {
	return j.ways[from].blocked == 0 && !j.ways[from].clear.After(at)
}

// Starts is told before the DNS server is started.
func (j *Judge) Starts() { j.serves = false }

// SeesCopy reports the endpoints of a service of another cluster that the reader has.
func (j *Judge) SeesCopy(of, name string, endpoints []netip.Addr, now time.Time) {
	e := j.exports[key{of, name}]
	if e == nil || !e.healthy {
		return
	}
	for _, each := range endpoints {
		if known := j.addresses[name][each]; known != nil && known.cluster == of && known.period == e.period {
			note(j.copies, key{of, name}, e.period, now)
		}
	}
}

// SeesIPs reports the IPs of an import, none if it is gone.
func (j *Judge) SeesIPs(name string, ips []netip.Addr, now time.Time) {
	if j.ips[name] == nil {
		j.ips[name] = map[netip.Addr]time.Time{}
	}
	for each, until := range j.ips[name] {
		if until.Equal(forever) {
			j.ips[name][each] = now
		}
	}
	for _, each := range ips {
		j.ips[name][each] = forever
	}
}

// note keeps the first proof of a period.
func note(proofs map[key]proof, of key, period int, at time.Time) {
	if proofs[of].period != period {
		proofs[of] = proof{period, at}
	}
}

func (j *Judge) describe(name, cluster string) string {
	e := j.exports[key{cluster, name}]
	if e == nil {
		return fmt.Sprintf("%s never exported it", cluster)
	}
	return fmt.Sprintf("%s: healthy %v, period %d since %s", cluster, e.healthy, e.period, e.since.Format(clockFormat))
}

const clockFormat = "15:04:05.000"
