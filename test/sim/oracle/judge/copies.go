// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle/truth"
)

// readiness notes which endpoints of an export are ready from now on.
func (j *Judge) readiness(cluster, name string, next State) {
	for each, known := range j.addresses[name] {
		if known.cluster != cluster {
			continue
		}
		ready := next.Exported && next.Present &&
			slices.ContainsFunc(next.Endpoints, func(e truth.Endpoint) bool { return e.Ready && e.Address == each })
		if known.ready && !ready {
			known.broken = true
			for _, r := range j.readers {
				delete(r.held[name], each)
			}
		}
		if ready && !known.ready {
			known.since = time.Time{}
		}
		known.ready = ready
	}
}

// Forget is told before what a cluster holds of others is deleted, or becomes
// older than it was: what was proved before counts no longer.
func (j *Judge) Forget(cluster string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forget(cluster)
}

func (j *Judge) forget(cluster string) {
	r := j.readers[cluster]
	r.copies, r.known = map[key]proof{}, map[key]proof{}
	r.held, r.dark = map[string]map[netip.Addr]bool{}, map[string]time.Time{}
}

// Copies judges all endpoints that a cluster holds of a service, by source
// cluster, and returns what is wrong with them:
//
//   - an endpoint that is ready was never exported, or was withdrawn;
//   - an endpoint is missing that is ready at its source and was held before, or
//     on whose way nothing stood for long;
//   - none is ready for long, although one is held that is ready at its source, and
//     the API server of the cluster works.
func (j *Judge) Copies(in, name string, held map[string][]truth.Endpoint, now time.Time) (wrong []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, long := j.readers[in], now.Add(-j.bound)
	fault := func(format string, args ...any) {
		wrong = append(wrong,
			fmt.Sprintf("%s, copies of %s in %s: ", now.Format(clockFormat), name, in)+fmt.Sprintf(format, args...))
	}
	if r.held[name] == nil {
		r.held[name] = map[netip.Addr]bool{}
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
				r.held[name][endpoint.Address] = !known.broken
				// A copy may be of the time when it was not ready.
				if !endpoint.Ready && (!known.broken || j.clearSince(cluster, in, known.since)) {
					demoted = endpoint.Address.String()
				}
			case !endpoint.Ready:
			case known == nil || known.cluster != cluster:
				fault("%s never exported %s for it", cluster, endpoint.Address)
			case known.until.Before(long) && j.clearSince(cluster, in, long):
				fault("%s withdrew %s at %s, and nothing stood in the way for %s", cluster, endpoint.Address,
					known.until.Format(clockFormat), j.bound)
			}
		}
	}
	var missing []string
	for each, known := range j.addresses[name] {
		arrived := !known.since.IsZero() && !known.since.After(long) && j.clearSince(known.cluster, in, long)
		if known.ready && !present[each] && (r.held[name][each] || arrived) {
			missing = append(missing,
				fmt.Sprintf("%s of %s, ready since %s, held before: %v", each, known.cluster,
					known.since.Format(clockFormat), r.held[name][each]))
		}
	}
	if slices.Sort(missing); len(missing) > 0 {
		fault("lost %s", strings.Join(missing, "; "))
	}
	switch dark, was := r.dark[name]; {
	case ready || demoted == "" || !j.clearSince(in, in, long):
		delete(r.dark, name) // or nothing can be written here
	case !was:
		r.dark[name] = now
	case dark.Before(long):
		fault("%s is ready at its source, and nothing is ready here since %s", demoted, dark.Format(clockFormat))
	}
	return wrong
}
