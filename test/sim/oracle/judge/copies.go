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
func (j *Judge) readiness(cluster, name string, next State, now time.Time) {
	for each, known := range j.addresses[name] {
		if known.cluster != cluster {
			continue
		}
		ready := next.Exported && next.Present &&
			slices.ContainsFunc(next.Endpoints, func(e truth.Endpoint) bool { return e.Ready && e.Address == each })
		if known.ready && !ready {
			known.broken = true
			delete(j.held[name], each)
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

// Copies judges all endpoints that the reader holds of a service, by source
// cluster, and returns what is wrong with them:
//
//   - an endpoint that is ready was never exported, or was withdrawn;
//   - an endpoint is missing that is ready at its source and was held before, or
//     on whose way nothing stood for long;
//   - none is ready for long, although one is held that is ready at its source, and
//     the API server of the cluster works.
func (j *Judge) Copies(name string, held map[string][]truth.Endpoint, now time.Time) (wrong []string) {
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
			case known == nil || known.cluster != cluster:
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
