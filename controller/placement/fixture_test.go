// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

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

	annotations  = exporttest.Annotations
	distribution = exporttest.Distribution
	diff         = exporttest.Diff
	conditionOf  = exporttest.ConditionOf
)

// Observed is the state of a cluster, with what places endpoints there.
type Observed struct {
	merge.Observed
	// Properties are those of all clusters.
	Properties map[string]map[string]string
	Prefer     string
	Nodes      Nodes
}

func (o Observed) here() Here {
	return Here{
		Cluster:    scope.Cluster{ID: o.Cluster, Properties: o.Properties[o.Cluster]},
		Properties: func(cluster string) map[string]string { return o.Properties[cluster] },
		Prefer:     o.Prefer, Nodes: o.Nodes,
	}
}

// merged is the result of a merge in which the placement has its part.
func merged(o Observed, contributions []merge.Contribution) merge.Result {
	o.Place = o.here().Of
	return merge.Merge(o.Observed, contributions)
}

// newObserved is a cluster with its ServiceExport and nothing else of the service.
func newObserved(cluster string) Observed {
	return Observed{Observed: merge.Observed{
		Cluster:    cluster,
		Service:    web,
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
		ServiceExport: &v1beta1.ServiceExport{
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web", UID: "uid-of-export", Generation: 3},
		},
	}}
}

func contribute(views ...*export.View) []merge.Contribution {
	var all []merge.Contribution
	for _, view := range views {
		all = append(all, merge.Contribution{View: view})
	}
	return all
}

// settle is what is observed after the result was written.
func settle(observed Observed, result merge.Result) Observed {
	observed.ServiceImport, observed.DerivedService = exporttest.Stored(result.ServiceImport, result.DerivedService)
	if observed.ServiceExport != nil {
		observed.ServiceExport = observed.ServiceExport.DeepCopy()
		observed.ServiceExport.Status.Conditions = result.ExportConditions
	}
	return observed
}

// settled merges until nothing changes.
func settled(t testing.TB, observed Observed, contributions []merge.Contribution) (Observed, merge.Result) {
	t.Helper()
	result := merged(observed, contributions)
	for range 4 {
		observed = settle(observed, result)
		next := merged(observed, contributions)
		if reflect.DeepEqual(next, result) {
			return observed, result
		}
		result = next
	}
	t.Fatal("the merge does not come to rest")
	return observed, result
}
