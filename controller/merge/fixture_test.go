// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/export/exporttest"
)

var web = exporttest.Web

// Exports of web.
var (
	newView   = exporttest.View
	newAbsent = exporttest.Absent
	newSlice  = exporttest.Slice
	headless  = exporttest.Headless

	diff = exporttest.Diff
)

func conditionOf(conditions []metav1.Condition, kind string) metav1.Condition {
	return *meta.FindStatusCondition(conditions, kind)
}

// demotedLast is a Placement with the endpoints of demoted contributions after all others.
type demotedLast struct{}

func (demotedLast) Level(from Contribution, _ *discoveryv1.Endpoint) (use, cover Level) {
	if from.Demote {
		return 1, 1
	}
	return 0, 0
}

func (demotedLast) Decorate(*discoveryv1.EndpointSlice, Contribution, *export.Slice, []int) {}

func (demotedLast) Hinted() bool { return false }

func (demotedLast) Conditions() []metav1.Condition { return nil }

func (demotedLast) Rules(string) []string { return nil }

func demoting(*v1beta1.ServiceImport, []Contribution) Placement { return demotedLast{} }

// newObserved is a cluster with its ServiceExport and no other object of the service.
func newObserved(cluster string) Observed {
	return Observed{
		Cluster:    cluster,
		Service:    web,
		APIVersion: v1beta1.GroupVersion.String(),
		Place:      demoting,
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
		ServiceExport: &v1beta1.ServiceExport{
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web", UID: "uid-of-export", Generation: 3},
		},
	}
}

func contribute(views ...*export.View) []Contribution {
	var all []Contribution
	for _, view := range views {
		all = append(all, Contribution{View: view})
	}
	return all
}

// settled merges and stores the result until nothing changes.
func settled(t testing.TB, observed Observed, contributions []Contribution) (Observed, Result) {
	t.Helper()
	result := Merge(observed, contributions)
	for range 4 {
		observed.ServiceImport, observed.DerivedService = exporttest.Stored(result.ServiceImport, result.DerivedService)
		next := Merge(observed, contributions)
		if reflect.DeepEqual(next, result) {
			return observed, result
		}
		result = next
	}
	t.Fatal("the merge does not come to rest")
	return observed, result
}
