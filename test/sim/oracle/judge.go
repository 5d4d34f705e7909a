// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

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
	// until is how long there may have been a ServiceExport, and shared how long one with a Service.
	until, shared time.Time
}

// An address is one that a cluster exported for a service.
type address struct {
	cluster   string
	published bool      // since it is exported
	period    int       // of the export, when it was first published
	until     time.Time // how long it may have been published
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

// A Judge judges what one cluster has and answers, the reader. Its callers report every change once it is written, every
// fault before it begins and after it is healed, the copies and IPs in the cluster, and every answer, in this order.
// Uncertainty counts in favor of the answer.
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

// NewJudge returns a judge to whom all ways are clear since now. bound is how long a change may take over a way that is clear.
func NewJudge(now time.Time, bound time.Duration, reader string, clusters ...string) *Judge {
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
func (j *Judge) Change(cluster string, next Service, now time.Time) {
	name := next.Name
	e := j.exports[key{cluster, name}]
	if e == nil {
		e = &export{}
		j.exports[key{cluster, name}] = e
	}
	extend(&e.until, next.Exported, now)
	extend(&e.shared, next.Shared(), now)
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
	for _, endpoint := range next.Endpoints {
		// A watch of its controller may be behind another, so that a new export begins with what was ready before, and one
		// that ends may still get what is ready after it.
		if (next.Present || !e.shared.IsZero()) && endpoint.Ready && j.addresses[name][endpoint.Address] == nil {
			j.addresses[name][endpoint.Address] = &address{cluster: cluster, until: e.shared}
		}
	}
	published := next.addresses()
	for _, each := range published {
		if known := j.addresses[name][each]; known == nil || !known.published {
			j.addresses[name][each] = &address{cluster: cluster, published: true, period: e.period}
		}
	}
	for each, known := range j.addresses[name] {
		if known.cluster == cluster {
			extend(&known.until, slices.Contains(published, each), now)
		}
	}
	j.readiness(cluster, next, now)
}

// extend sets until when something may be seen of what is there now, or not.
func extend(until *time.Time, is bool, now time.Time) {
	if is {
		*until = forever
	} else if until.Equal(forever) {
		*until = now
	}
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

const clockFormat = "15:04:05.000"

// Reply judges a reply of the reader's DNS server, and returns what is wrong with it.
func (j *Judge) Reply(reply Reply) (wrong []string) {
	fault := func(format string, args ...any) {
		wrong = append(wrong,
			fmt.Sprintf("%s, %s in %s: %s: ", reply.At.Format(clockFormat), reply.Name, j.reader, reply)+fmt.Sprintf(format, args...))
	}
	j.serves = j.serves || reply.Code != dns.RcodeServerFailure
	for _, each := range reply.Addresses {
		j.judgeAddress(reply, each, fault)
	}
	if len(reply.Addresses) > 0 {
		if nobody := j.nobodyExports(reply); nobody != "" && len(wrong) == 0 {
			fault("%s", nobody)
		}
		j.learn(reply)
		return wrong
	}
	// A server that has only begun need not answer.
	if owed := j.owed(reply); owed != "" && (j.serves || j.ClearSince(j.reader, reply.At.Add(-j.bound))) {
		fault("it is healthy: %s", owed)
	}
	return wrong
}

// owed says why a reply must hold an address, empty where it need not: a cluster has had a ready endpoint, without a
// break since an answer here showed one of them, or for so long that it must have arrived.
func (j *Judge) owed(reply Reply) string {
	for _, cluster := range j.clusters {
		of := key{cluster, reply.Name}
		e := j.exports[of]
		if e == nil || !e.healthy {
			continue
		}
		is := fmt.Sprintf("; %s: period %d since %s", cluster, e.period, e.since.Format(clockFormat))
		if proved := j.proved[of]; proved.period == e.period {
			return "answers showed it since " + proved.at.Format(clockFormat) + is
		}
		long := reply.At.Add(-j.bound)
		if !e.since.After(long) && j.ClearSince(cluster, long) {
			return "nothing stood in its way for " + j.bound.String() + is
		}
	}
	return ""
}

// judgeAddress looks whether an answer may hold the address.
func (j *Judge) judgeAddress(reply Reply, held netip.Addr, fault func(string, ...any)) {
	long := reply.At.Add(-j.bound)
	if known := j.addresses[reply.Name][held]; known != nil && !j.exports[key{known.cluster, reply.Name}].until.IsZero() {
		if known.until.Before(long) && j.ClearSince(known.cluster, long) {
			fault("%s withdrew %s at %s, and nothing stood in the way for %s", known.cluster, held,
				known.until.Format(clockFormat), j.bound)
		}
		return
	}
	for name, addresses := range j.addresses {
		if known := addresses[held]; known != nil {
			fault("%s was never exported for it, but for %s by %s", held, name, known.cluster)
			return
		}
	}
	until, ok := j.ips[reply.Name][held]
	switch {
	case !ok:
		fault("%s was never exported for it, nor the IP of its import", held)
	case until.Before(long) && j.ClearSince(j.reader, long):
		fault("the import lost the IP %s at %s, and nothing stood in the way for %s", held, until.Format(clockFormat),
			j.bound)
	}
}

// nobodyExports says that no cluster has exported the service for long.
func (j *Judge) nobodyExports(reply Reply) string {
	long := reply.At.Add(-j.bound)
	for _, cluster := range j.clusters {
		e := j.exports[key{cluster, reply.Name}]
		if e != nil && !e.until.Before(long) || !j.ClearSince(cluster, long) {
			return ""
		}
	}
	return "nobody has exported it for " + j.bound.String()
}

// learn notes which exports an answer proves to have arrived.
func (j *Judge) learn(reply Reply) {
	for _, held := range reply.Addresses {
		if known := j.addresses[reply.Name][held]; known != nil {
			of := key{known.cluster, reply.Name}
			if e := j.exports[of]; e.healthy && e.period == known.period {
				note(j.proved, of, e.period, reply.At)
			}
			continue
		}
		// The IP of the import that there is now: all that the import is made from was there before the query.
		if !j.ips[reply.Name][held].Equal(forever) {
			continue
		}
		for _, cluster := range j.clusters {
			of := key{cluster, reply.Name}
			if e, copied := j.exports[of], j.copies[of]; e != nil && e.healthy && copied.period == e.period {
				note(j.proved, of, e.period, reply.At)
			}
		}
	}
}

// readiness notes which endpoints of an export are ready from now on.
func (j *Judge) readiness(cluster string, next Service, now time.Time) {
	for each, known := range j.addresses[next.Name] {
		if known.cluster != cluster {
			continue
		}
		ready := next.Shared() &&
			slices.ContainsFunc(next.Endpoints, func(e Endpoint) bool { return e.Ready && e.Address == each })
		if known.ready && !ready {
			known.broken = true
			delete(j.held[next.Name], each)
		}
		if ready && !known.ready {
			known.since = now
		}
		known.ready = ready
	}
}

// Forget is told before what the reader holds of others is deleted, or becomes
// older than it was: what was proved before counts no longer.
func (j *Judge) Forget() {
	j.copies, j.proved = map[key]proof{}, map[key]proof{}
	j.held, j.dark = map[string]map[netip.Addr]bool{}, map[string]time.Time{}
}

// Copies judges all endpoints that the reader holds of a service, by source cluster, and returns what is wrong with them:
//
//   - an endpoint that is ready was never exported, or was withdrawn;
//   - an endpoint is missing that is ready at its source and was held before, or on whose way nothing stood for long;
//   - none is ready for long, although one is held that is ready at its source, and the API server of the cluster works.
func (j *Judge) Copies(name string, held map[string][]Endpoint, now time.Time) (wrong []string) {
	long := now.Add(-j.bound)
	fault := func(format string, args ...any) {
		wrong = append(wrong,
			fmt.Sprintf("%s, copies of %s in %s: ", now.Format(clockFormat), name, j.reader)+fmt.Sprintf(format, args...))
	}
	if j.held[name] == nil {
		j.held[name] = map[netip.Addr]bool{}
	}
	present := map[netip.Addr]bool{}
	ready, demoted := false, ""
	for _, cluster := range slices.Sorted(maps.Keys(held)) {
		for _, endpoint := range held[cluster] {
			known := j.addresses[name][endpoint.Address]
			present[endpoint.Address] = true
			ready = ready || endpoint.Ready
			switch {
			case known != nil && known.cluster == cluster && known.ready:
				j.held[name][endpoint.Address] = !known.broken
				// A copy may be of the time when it was not ready.
				if !endpoint.Ready && (!known.broken || j.ClearSince(cluster, known.since)) {
					demoted = endpoint.Address.String()
				}
			case !endpoint.Ready:
			case known == nil || known.cluster != cluster || j.exports[key{cluster, name}].until.IsZero():
				fault("%s never exported %s for it", cluster, endpoint.Address)
			case known.until.Before(long) && j.ClearSince(cluster, long):
				fault("%s withdrew %s at %s, and nothing stood in the way for %s", cluster, endpoint.Address,
					known.until.Format(clockFormat), j.bound)
			}
		}
	}
	var missing []string
	for each, known := range j.addresses[name] {
		arrived := !known.since.After(long) && j.ClearSince(known.cluster, long)
		if known.ready && !present[each] && (j.held[name][each] || arrived) {
			missing = append(missing,
				fmt.Sprintf("%s of %s, ready since %s, held before: %v", each, known.cluster,
					known.since.Format(clockFormat), j.held[name][each]))
		}
	}
	if slices.Sort(missing); len(missing) > 0 {
		fault("lost %s", strings.Join(missing, "; "))
	}
	switch dark, was := j.dark[name]; {
	case ready || demoted == "" || !j.ClearSince(j.reader, long):
		delete(j.dark, name) // or nothing can be written here
	case !was:
		j.dark[name] = now
	case dark.Before(long):
		fault("%s is ready at its source, and nothing is ready here since %s", demoted, dark.Format(clockFormat))
	}
	return wrong
}
