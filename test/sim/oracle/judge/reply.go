// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"net/netip"
	"time"
)

// An Outcome is what came of a query.
type Outcome string

// The outcomes.
const (
	// Answered is NOERROR.
	Answered Outcome = "NOERROR"
	// NoName is NXDOMAIN.
	NoName Outcome = "NXDOMAIN"
	// Failed is SERVFAIL, and any other response code.
	Failed Outcome = "SERVFAIL"
	// Silence is no answer: a timeout, or a port that nobody listens on.
	Silence Outcome = "no answer"
)

// A Reply is what came of one query for the addresses of a service.
type Reply struct {
	// Reader is the cluster whose DNS server was asked.
	Reader string
	// Name is that of the service.
	Name           string
	Sent, Received time.Time
	Outcome        Outcome
	Addresses      []netip.Addr
}

// Reply judges a reply, and returns what is wrong with it. Replies of one reader may come in any order.
func (j *Judge) Reply(reply Reply) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.figures.Queries++
	r := j.readers[reply.Reader]
	if (reply.Outcome == Answered || reply.Outcome == NoName) && !reply.Sent.Before(r.started) && r.serving.IsZero() {
		r.serving = reply.Received
	}
	var wrong []string
	fault := func(format string, args ...any) {
		wrong = append(wrong,
			fmt.Sprintf("%s, %s in %s: %s %v: ", reply.Sent.Format(clockFormat), reply.Name, reply.Reader,
				reply.Outcome, reply.Addresses)+
				fmt.Sprintf(format, args...))
	}
	owed := j.owed(r, reply)
	if owed != "" {
		j.figures.Owed++
	}
	for _, each := range reply.Addresses {
		j.figures.Addresses++
		j.judgeAddress(r, reply, each, fault)
	}
	if len(reply.Addresses) > 0 {
		if nobody := j.nobodyExports(reply); nobody != "" && len(wrong) == 0 {
			fault("%s", nobody)
		}
		j.learn(r, reply)
		return wrong
	}
	up := !r.serving.IsZero() && !r.serving.After(reply.Sent) ||
		j.clearSince(reply.Reader, reply.Reader, reply.Sent.Add(-j.bound))
	switch {
	case owed == "":
		if reply.Outcome == Failed || reply.Outcome == Silence {
			j.figures.Unanswered++
		}
	case reply.Outcome == Answered || reply.Outcome == NoName || up:
		fault("it is healthy: %s", owed)
	default:
		j.figures.Owed--
		j.figures.Unanswered++
	}
	return wrong
}

// owed says why a reply must hold an address, empty where it need not: a cluster has had a ready endpoint, without a
// break since an answer here showed one of them, or for so long that it must have arrived.
func (j *Judge) owed(r *reader, reply Reply) string {
	for _, cluster := range j.clusters {
		of := key{cluster, reply.Name}
		e := j.exports[of]
		if e == nil || !e.healthy {
			continue
		}
		if known := r.known[of]; known.period == e.period && !known.at.After(reply.Sent) {
			return "answers showed it since " + known.at.Format(clockFormat) + "; " + j.describe(reply.Name, cluster)
		}
		long := reply.Sent.Add(-j.bound)
		if !e.since.IsZero() && !e.since.After(long) && j.clearSince(cluster, reply.Reader, long) {
			return "nothing stood in its way for " + j.bound.String() + "; " + j.describe(reply.Name, cluster)
		}
	}
	return ""
}

// judgeAddress looks whether an answer may hold the address.
func (j *Judge) judgeAddress(r *reader, reply Reply, held netip.Addr, fault func(string, ...any)) {
	long := reply.Sent.Add(-j.bound)
	if known := j.addresses[reply.Name][held]; known != nil {
		if known.until.Equal(forever) {
			return
		}
		j.figures.Bounded++
		if known.until.Before(long) && j.clearSince(known.cluster, reply.Reader, long) {
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
	known, ok := r.ips[reply.Name][held]
	switch {
	case !ok:
		wrong := fmt.Sprintf("%s, %s in %s: %s was never exported for it, nor the IP of its import",
			reply.Sent.Format(clockFormat), reply.Name, reply.Reader, held)
		r.doubts = append(r.doubts, doubt{reply.Name, held, wrong})
	case known.until.Equal(forever):
	default:
		j.figures.Bounded++
		if known.until.Before(long) && j.clearSince(reply.Reader, reply.Reader, long) {
			fault("the import lost the IP %s at %s, and nothing stood in the way for %s", held,
				known.until.Format(clockFormat), j.bound)
		}
	}
}

// nobodyExports says that no cluster has exported the service for long.
func (j *Judge) nobodyExports(reply Reply) string {
	long := reply.Sent.Add(-j.bound)
	for _, cluster := range j.clusters {
		e := j.exports[key{cluster, reply.Name}]
		if e != nil && !e.until.Before(long) || !j.clearSince(cluster, reply.Reader, long) {
			return ""
		}
	}
	return "nobody has exported it for " + j.bound.String()
}

// learn notes which exports an answer proves to have arrived.
func (j *Judge) learn(r *reader, reply Reply) {
	for _, held := range reply.Addresses {
		if known := j.addresses[reply.Name][held]; known != nil {
			of := key{known.cluster, reply.Name}
			if e := j.exports[of]; e.healthy && e.period == known.period {
				note(r.known, of, e.period, reply.Received)
			}
			continue
		}
		// The IP of the import that there is now: the server has seen it, and all
		// that the import is made from was there before the query.
		if ip, ok := r.ips[reply.Name][held]; !ok || !ip.until.Equal(forever) || ip.from.After(reply.Sent) {
			continue
		}
		for _, cluster := range j.clusters {
			of := key{cluster, reply.Name}
			e, copied := j.exports[of], r.copies[of]
			if e != nil && e.healthy && copied.period == e.period && !copied.at.After(reply.Sent) {
				note(r.known, of, e.period, reply.Received)
			}
		}
	}
}
