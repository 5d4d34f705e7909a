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
)

// A Reply is what came of one query for the addresses of a service.
type Reply struct {
	// Name is that of the service.
	Name      string
	At        time.Time
	Outcome   Outcome
	Addresses []netip.Addr
}

// Reply judges a reply of the reader's DNS server, and returns what is wrong with it.
func (j *Judge) Reply(reply Reply) (wrong []string) {
	fault := func(format string, args ...any) {
		wrong = append(wrong,
			fmt.Sprintf("%s, %s in %s: %s %v: ", reply.At.Format(clockFormat), reply.Name, j.reader, reply.Outcome,
				reply.Addresses)+fmt.Sprintf(format, args...))
	}
	j.serves = j.serves || reply.Outcome != Failed
	owed := j.owed(reply)
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
	if owed != "" && (j.serves || j.ClearSince(j.reader, reply.At.Add(-j.bound))) {
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
		if proved := j.proved[of]; proved.period == e.period {
			return "answers showed it since " + proved.at.Format(clockFormat) + "; " + j.describe(reply.Name, cluster)
		}
		long := reply.At.Add(-j.bound)
		if !e.since.After(long) && j.ClearSince(cluster, long) {
			return "nothing stood in its way for " + j.bound.String() + "; " + j.describe(reply.Name, cluster)
		}
	}
	return ""
}

// judgeAddress looks whether an answer may hold the address.
func (j *Judge) judgeAddress(reply Reply, held netip.Addr, fault func(string, ...any)) {
	long := reply.At.Add(-j.bound)
	if known := j.addresses[reply.Name][held]; known != nil {
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
