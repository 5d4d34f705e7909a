// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/export/exporttest"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

var web = exporttest.Web

// Exports of web.
var (
	newView   = exporttest.View
	newAbsent = exporttest.Absent
	newSlice  = exporttest.Slice
	headless  = exporttest.Headless
	families  = exporttest.Families

	diff = exporttest.Diff
)

// distribution gives a view a traffic distribution.
func distribution(value string) func(*export.View) {
	return func(view *export.View) { view.Spec.TrafficDistribution = value }
}

// regions are the properties of clusters; the properties of south are unknown.
var regions = map[string]map[string]string{"east": {"region": "eu"}, "near": {"region": "eu"}, "west": {"region": "us"}}

// Observed is the state of cluster east, with the input of placements.
type Observed struct {
	merge.Observed
	Prefer string
	Nodes  Nodes
}

// both are the IP families of east.
var both = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}

// newObserved is east with nodes in these zones.
func newObserved(zones ...string) Observed {
	return Observed{Observed: merge.Observed{Cluster: "east", Service: web, IPFamilies: both}, Nodes: Nodes{Zones: zones}}
}

func (o Observed) here() Here {
	return Here{
		Cluster:    scope.Cluster{ID: o.Cluster, Properties: regions[o.Cluster]},
		Properties: func(cluster string) map[string]string { return regions[cluster] },
		Prefer:     o.Prefer, Nodes: o.Nodes,
	}
}

// merged is the result of a merge with a placement.
func merged(o Observed, contributions []merge.Contribution) merge.Result {
	o.Place = o.here().Of
	return merge.Merge(o.Observed, contributions)
}

// settled merges and stores the result until nothing changes.
func settled(t *testing.T, o Observed, contributions []merge.Contribution) (Observed, merge.Result) {
	t.Helper()
	var result merge.Result
	for range 3 { // the last one has the IPs
		result = merged(o, contributions)
		o.ServiceImport, o.DerivedService = exporttest.Stored(result.ServiceImport, result.DerivedService)
	}
	diff(t, "result at rest", merged(o, contributions), result)
	return o, result
}

func contribute(views ...*export.View) (all []merge.Contribution) {
	for _, view := range views {
		all = append(all, merge.Contribution{View: view})
	}
	return all
}

// exporting are the contributions of east, near, west and south, each with so many endpoints as in "east=2 near=1", which
// all have the same settings, as in "prefer=west > near|weights=west=10". Some are odd: "down", "silent", "overloaded", or
// the second endpoint is "terminating".
func exporting(t *testing.T, asks, endpoints string, odd map[string]string, change ...func(*export.View)) (all []merge.Contribution) {
	t.Helper()
	asked := map[string]string{}
	for each := range strings.SplitSeq(asks, "|") {
		key, value, _ := strings.Cut(each, "=")
		asked[export.Domain+"/"+key] = value
	}
	for i, cluster := range []string{"east", "near", "west", "south"} {
		view := newView(cluster, 1+i, "80/TCP", addresses(1+i, counts(t, endpoints)[cluster]), change...)
		view.Spec.Annotations, view.Spec.Overloaded = maps.Clone(asked), odd[cluster] == "overloaded"
		for j := range view.Slices[0].Endpoints {
			switch {
			case odd[cluster] == "down":
				view.Slices[0].Endpoints[j].Conditions = export.Conditions(false, false, false)
			case odd[cluster] == "terminating" && j == 1:
				view.Slices[0].Endpoints[j].Conditions = export.Conditions(false, true, true)
			}
		}
		all = append(all, merge.Contribution{View: view, Demote: odd[cluster] == "silent"})
	}
	return all
}

// addresses returns the given number of addresses of a cluster.
func addresses(cluster, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("10.%d.0.%d", cluster, i+1))
	}
	return strings.Join(all, " ")
}

// counts reads a text such as "east=9 west=3".
func counts(t *testing.T, text string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, field := range strings.Fields(text) {
		var n int
		cluster, count, _ := strings.Cut(field, "=")
		if _, err := fmt.Sscan(count, &n); err != nil {
			t.Fatal(err)
		}
		all[cluster] = n
	}
	return all
}

// told is a condition of the import as text, empty if the import has no such condition.
func told(result merge.Result, kind string) string {
	condition := meta.FindStatusCondition(result.ServiceImport.Status.Conditions, kind)
	if condition == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %s", condition.Status, condition.Reason, condition.Message)
}
