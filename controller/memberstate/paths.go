// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"cmp"
	"slices"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
)

var _ canary.Tracker = (*Tracker)(nil)

// Offer implements canary.Tracker.
func (t *Tracker) Offer(cluster string, canaries []canary.Canary) {
	t.update(cluster, func(*tracked) {
		names, byName := make([]string, len(canaries)), make(map[string]canary.Canary, len(canaries))
		for i, each := range canaries {
			names[i] = each.Address.String()
			byName[names[i]] = each
		}
		t.canaries[cluster] = byName
		t.paths.Offer(cluster, names)
	})
}

// ForgetPaths forgets the paths that the previous leader left: this one does not probe. It is to be called before the
// tracker has members.
func (t *Tracker) ForgetPaths() {
	for cluster, left := range t.left {
		left.path = liveness.PathUnknown
		t.left[cluster] = left
	}
}

// Probed implements canary.Tracker.
func (t *Tracker) Probed(p liveness.Probe) (doubtful bool) {
	t.mu.Lock()
	if t.members[p.Cluster] == nil {
		t.mu.Unlock()
		return false
	}
	wasCut := t.paths.Cut(p.Cluster, p.Canary)
	changed := t.paths.Probed(p)
	isCut := t.paths.Cut(p.Cluster, p.Canary)
	found := t.canaries[p.Cluster][p.Canary]
	doubtful = t.paths.Doubtful(p)
	t.mu.Unlock()
	if wasCut != isCut {
		t.reporter.canary(p.Cluster, found, isCut)
	}
	if changed {
		t.judge(func(now time.Time) []liveness.Change {
			if m := t.members[p.Cluster]; m != nil {
				return t.put(now, m)
			}
			return nil
		})
	}
	return doubtful
}

// A ProbedCanary is a canary of a member.
type ProbedCanary struct {
	Cluster string
	canary.Canary
	// Cut is set while it is not reached.
	Cut bool
}

// Canaries returns the canaries of all members, sorted by cluster and address.
func (t *Tracker) Canaries() (all []ProbedCanary) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for cluster, canaries := range t.canaries {
		for name, each := range canaries {
			all = append(all, ProbedCanary{cluster, each, t.paths.Cut(cluster, name)})
		}
	}
	slices.SortFunc(all, func(a, b ProbedCanary) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), a.Address.Compare(b.Address))
	})
	return all
}

// Path returns the path to the pods of a member.
func (t *Tracker) Path(cluster string) liveness.Path {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.paths.Of(cluster)
}

// canary logs that a canary is no longer reached, or again.
func (r *Reporter) canary(cluster string, found canary.Canary, cut bool) {
	message := "A canary of a member is reached again"
	if cut {
		message = "A canary of a member is not reached"
	}
	r.Logger.Info(message, "member", cluster, "canary", found.Address, "zone", found.Zone)
}
