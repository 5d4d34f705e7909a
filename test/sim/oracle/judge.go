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

// forever is the end of a period that has not ended.
var forever = time.Unix(1<<40, 0)

type key struct{ cluster, name string }

type copied struct {
	of      key
	address netip.Addr
}

// A word is the state of a service that a cluster publishes from a moment on.
type word struct {
	Service
	since time.Time
	// may are the addresses that a reader may have because of this word, if any word that it may go by exports the
	// service. The watches of the source's controller may lag behind each other: a new export may begin with endpoints
	// from before it, and a withdrawn export may still get later endpoints.
	may []netip.Addr
}

// ready reports whether the word exports a ready endpoint with this address.
func (w word) ready(address netip.Addr) bool {
	return w.Shared() && slices.ContainsFunc(w.Endpoints, func(e Endpoint) bool { return e.Ready && e.Address == address })
}

type way struct {
	blocked int
	clear   time.Time
}

// A Judge judges the copies and answers of one cluster, the reader. Its callers report every change after it is
// written, every fault before it begins and after it is healed, the copies and IPs in the cluster, and every answer, in
// this order. If the judge is uncertain, the answer counts as correct.
type Judge struct {
	reader   string
	bound    time.Duration
	clusters []string

	words map[key][]word  // oldest first; the first word is empty
	ways  map[string]*way // to the reader, by the cluster in which they begin
	// copied and answered are the indices of the newest words that must have arrived, as the reader's objects and
	// answers prove; held are the addresses that the reader has had.
	copied, answered map[key]int
	held             map[copied]bool
	// dark is the time since when no copy of a service is ready in the reader, although one is ready at its source.
	dark   map[string]time.Time
	serves bool // the DNS server has answered since its start
	// ips are the IPs of imports, by service, with the time at which they ended.
	ips map[string]map[netip.Addr]time.Time
}

// NewJudge returns a judge for whom all ways are clear since now. A change takes at most bound over a clear way.
func NewJudge(now time.Time, bound time.Duration, reader string, clusters ...string) *Judge {
	j := &Judge{
		reader: reader, bound: bound, clusters: clusters, words: map[key][]word{}, ways: map[string]*way{},
		ips: map[string]map[netip.Addr]time.Time{},
	}
	j.Forget()
	for _, from := range clusters {
		j.ways[from] = &way{clear: now}
	}
	return j
}

// Change reports a new state of a cluster's service, after it was written.
func (j *Judge) Change(cluster string, next Service, now time.Time) {
	of, w := key{cluster, next.Name}, word{Service: next, since: now}
	if j.words[of] == nil {
		j.words[of] = []word{{}}
	}
	if next.Present || slices.ContainsFunc(j.words[of], func(w word) bool { return w.Shared() }) {
		w.may = next.usable()
	}
	j.words[of] = append(j.words[of], w)
}

// from returns the index of the oldest word that the reader may go by: the last word older than the bound if the way
// has been clear for that long, else the first word.
func (j *Judge) from(of key, now time.Time) int {
	long := now.Add(-j.bound)
	for i, w := range slices.Backward(j.words[of]) {
		if w.since.Before(long) && j.ClearSince(of.cluster, long) {
			return i
		}
	}
	return 0
}

// may reports whether the reader may have an address of a cluster.
func (j *Judge) may(of key, address netip.Addr, now time.Time) bool {
	words := j.words[of][j.from(of, now):]
	return slices.ContainsFunc(words, func(w word) bool { return w.Shared() }) &&
		slices.ContainsFunc(words, func(w word) bool { return slices.Contains(w.may, address) })
}

// must reports whether says is true for all words that the reader may go by. oldest is a lower limit for their indices.
func (j *Judge) must(of key, oldest int, now time.Time, says func(word) bool) bool {
	words := j.words[of]
	return len(words) > 0 && !slices.ContainsFunc(words[max(oldest, j.from(of, now)):], func(w word) bool { return !says(w) })
}

// first returns the index of the first word that exports an address, or -1.
func (j *Judge) first(of key, address netip.Addr) int {
	return slices.IndexFunc(j.words[of], func(w word) bool { return w.Shared() && slices.Contains(w.may, address) })
}

// Block reports a fault on the way from a cluster, before it begins.
func (j *Judge) Block(from string) { j.ways[from].blocked++ }

// Clear reports the end of a fault, after it was healed.
func (j *Judge) Clear(now time.Time, from string) {
	j.ways[from].blocked--
	j.ways[from].clear = now
}

// ClearSince reports whether the way from a cluster has been clear since that time.
func (j *Judge) ClearSince(from string, at time.Time) bool {
	return j.ways[from].blocked == 0 && !j.ways[from].clear.After(at)
}

// Starts reports a start of the DNS server, before it happens.
func (j *Judge) Starts() { j.serves = false }

// Forget is called before the reader's copies are deleted or restored from a backup: what they have proved so far no
// longer counts.
func (j *Judge) Forget() {
	j.copied, j.answered, j.held, j.dark = map[key]int{}, map[key]int{}, map[copied]bool{}, map[string]time.Time{}
}

// SeesCopy reports the reader's copies of the endpoints of another cluster's service.
func (j *Judge) SeesCopy(from, name string, endpoints []netip.Addr) {
	of := key{from, name}
	for _, each := range endpoints {
		j.copied[of] = max(j.copied[of], j.first(of, each))
	}
}

// SeesIPs reports the IPs of an import; no IPs if the import is gone.
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

const clockFormat = "15:04:05.000"

// Reply judges a reply of the reader's DNS server. It returns a text for each of these mistakes:
//
//   - an address that no cluster has exported for the service, and that was not the IP of its import, for longer than the bound;
//   - any address if no cluster has exported the service for longer than the bound;
//   - no address, although a cluster has had a ready endpoint ever since an answer proved one, or for so long that it must have
//     arrived. A server that has just started need not answer.
func (j *Judge) Reply(reply Reply) (wrong []string) {
	fault := func(format string, args ...any) {
		wrong = append(wrong,
			fmt.Sprintf("%s, %s in %s: %s: ", reply.At.Format(clockFormat), reply.Name, j.reader, reply)+fmt.Sprintf(format, args...))
	}
	j.serves = j.serves || reply.Code != dns.RcodeServerFailure
	long, exported := reply.At.Add(-j.bound), false
	begins := !j.serves && !j.ClearSince(j.reader, long)
	for _, cluster := range j.clusters {
		of := key{cluster, reply.Name}
		exported = exported || slices.ContainsFunc(j.words[of][j.from(of, reply.At):], func(w word) bool { return w.Exported })
		if len(reply.Addresses) == 0 && !begins && j.must(of, j.answered[of], reply.At, word.healthy) {
			fault("it is healthy in %s: %+v", cluster, j.words[of][max(j.answered[of], j.from(of, reply.At)):])
		}
		for _, each := range reply.Addresses {
			j.answered[of] = max(j.answered[of], j.first(of, each))
		}
	}
	for _, held := range reply.Addresses {
		until, isIP := j.ips[reply.Name][held]
		if until.Equal(forever) { // the answer proves everything from which the import was made
			for _, cluster := range j.clusters {
				of := key{cluster, reply.Name}
				j.answered[of] = max(j.answered[of], j.copied[of])
			}
		}
		if (!isIP || until.Before(long) && j.ClearSince(j.reader, long)) &&
			!slices.ContainsFunc(j.clusters, func(cluster string) bool { return j.may(key{cluster, reply.Name}, held, reply.At) }) {
			fault("nobody has exported %s for it for %s, nor was it the IP of its import", held, j.bound)
		}
	}
	if len(reply.Addresses) > 0 && len(wrong) == 0 && !exported {
		fault("nobody has exported it for %s", j.bound)
	}
	return wrong
}

// Copies judges the reader's copies of a service's endpoints, by source cluster. It returns a text for each of these mistakes:
//
//   - an endpoint that is ready was never exported, or was withdrawn;
//   - an endpoint is missing that is ready at its source, and that was copied before or must have arrived by now;
//   - no copy is ready for longer than the bound, although one is ready at its source and the cluster's API server works.
func (j *Judge) Copies(name string, held map[string][]Endpoint, now time.Time) (wrong []string) {
	fault := func(format string, args ...any) {
		wrong = append(wrong,
			fmt.Sprintf("%s, copies of %s in %s: ", now.Format(clockFormat), name, j.reader)+fmt.Sprintf(format, args...))
	}
	ready, demoted := false, ""
	var missing []string
	for _, cluster := range slices.Sorted(maps.Keys(held)) {
		of := key{cluster, name}
		for _, endpoint := range held[cluster] {
			if ready = ready || endpoint.Ready; endpoint.Ready && !j.may(of, endpoint.Address, now) {
				fault("%s has not exported %s for it for %s", cluster, endpoint.Address, j.bound)
			}
			j.held[copied{of, endpoint.Address}] = j.first(of, endpoint.Address) >= 0 // otherwise it proves nothing
		}
	}
	for _, cluster := range j.clusters {
		of := key{cluster, name}
		if len(j.words[of]) == 0 {
			continue
		}
		for _, endpoint := range j.words[of][len(j.words[of])-1].Endpoints {
			oldest := 0
			if j.held[copied{of, endpoint.Address}] {
				oldest = j.first(of, endpoint.Address)
			}
			if !j.must(of, oldest, now, func(w word) bool { return w.ready(endpoint.Address) }) {
				continue
			}
			at := slices.IndexFunc(held[cluster], func(e Endpoint) bool { return e.Address == endpoint.Address })
			switch {
			case at < 0:
				missing = append(missing, fmt.Sprintf("%s of %s", endpoint.Address, cluster))
			case !held[cluster][at].Ready:
				demoted = endpoint.Address.String()
			}
		}
	}
	if len(missing) > 0 {
		fault("lost %s", strings.Join(missing, "; "))
	}
	long := now.Add(-j.bound)
	switch dark, was := j.dark[name]; {
	case ready || demoted == "" || !j.ClearSince(j.reader, long):
		delete(j.dark, name) // or the reader cannot write
	case !was:
		j.dark[name] = now
	case dark.Before(long):
		fault("%s is ready at its source, and nothing is ready here since %s", demoted, dark.Format(clockFormat))
	}
	return wrong
}
