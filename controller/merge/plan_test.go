// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// changeOne returns the contributions with one slice of one view changed, and the cluster and the states of the slice.
func changeOne(r *rand.Rand, contributions []Contribution) (changed []Contribution, cluster string, states []export.Slice) {
	changed = copyOfAll(contributions)
	of := pick(r, changed...)
	if of.View.Absent() {
		return nil, "", nil
	}
	slice := &of.View.Slices[r.IntN(len(of.View.Slices))]
	states = append(states, *slice)
	slice.Endpoints = slices.Clone(slice.Endpoints)
	for range 1 + r.IntN(2) {
		switch n := len(slice.Endpoints); {
		case r.IntN(8) == 0 && len(slice.Targets) > 0:
			slice.Targets = slice.Targets[1:]
		case n > 0 && r.IntN(3) == 0:
			slice.Endpoints = slice.Endpoints[:n-1]
		case n > 0:
			ready := r.IntN(2) == 0
			slice.Endpoints[r.IntN(n)].Conditions = export.Conditions(ready, true, !ready)
		default:
			slice.TriggerTime = "2026-03-01T12:00:00Z"
		}
	}
	return changed, of.View.Cluster, append(states, *slice)
}

// checkPlan changes one slice. If the plan says so, merging again changes that one object, as the plan does.
func checkPlan(t *testing.T, name string, r *rand.Rand, observed Observed, contributions []Contribution,
	before Result,
) (kept bool) {
	t.Helper()
	if len(contributions) == 0 || before.Plan == nil {
		return false
	}
	changed, cluster, states := changeOne(r, contributions)
	if changed == nil {
		return false
	}
	demoted := slices.ContainsFunc(contributions,
		func(c Contribution) bool { return c.View.Cluster == cluster && c.Demote })
	if before.Plan.Keeps(cluster, !demoted, states) {
		t.Errorf("%sthe plan stays though cluster %s is demoted: %t", name, cluster, !demoted)
	}
	if !before.Plan.Keeps(cluster, demoted, states) {
		return false
	}
	object := before.Plan.Slice(cluster, &states[1])
	want := before
	want.EndpointSlices = slices.Clone(before.EndpointSlices)
	at := slices.IndexFunc(want.EndpointSlices, func(s *discoveryv1.EndpointSlice) bool { return s.Name == object.Name })
	if at < 0 {
		t.Fatalf("%sthe plan makes %s, which the merge does not", name, object.Name)
	}
	want.EndpointSlices[at] = object
	got := Merge(observed, changed)
	got.Plan, want.Plan = nil, nil
	diff(t, name+"merged again after a slice of "+cluster+" changed", got, want)
	return true
}

// TestPlan checks in random clustersets that a plan does to a changed slice what a merge does, and that it is of use.
func TestPlan(t *testing.T) {
	t.Parallel()
	kept := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		members := randomClusterset(t, r)
		for _, m := range members {
			name := fmt.Sprintf("clusterset %d, cluster %s: ", seed, m.observed.Cluster)
			contributions := contributionsIn(r, m.observed.Cluster, members)
			observed, result := settled(t, m.observed, contributions)
			if checkPlan(t, name, r, observed, contributions, result) {
				kept++
			}
		}
		if t.Failed() {
			return
		}
	}
	if kept < 375 {
		t.Errorf("%d plans stayed the same", kept)
	}
}

// BenchmarkPlan is what one changed slice costs in a service of so many clusters and endpoints.
func BenchmarkPlan(b *testing.B) {
	for _, size := range [][2]int{{2, 10}, {20, 1000}, {200, 10000}} {
		b.Run(fmt.Sprintf("clusters=%d/endpoints=%d", size[0], size[1]), func(b *testing.B) {
			contributions := sized(size[0], size[1])
			_, result := settled(b, newObserved("cluster-0"), contributions)
			states := []export.Slice{contributions[1].View.Slices[0], contributions[1].View.Slices[0]}
			b.ReportAllocs()
			for b.Loop() {
				if !result.Plan.Keeps("cluster-1", false, states) {
					b.Fatal("the plan does not stay")
				}
				result.Plan.Slice("cluster-1", &states[1])
			}
		})
	}
}
