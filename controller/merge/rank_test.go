// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"testing"

	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestRankPrecedesCreation: a cluster states the creation times of its exports itself. One that the operator ranks
// behind the others wins no conflict with them, however old it says it is.
func TestRankPrecedesCreation(t *testing.T) {
	honest := newView("east", 5, "http:80/TCP", "10.1.0.1")
	for name, lie := range map[string]*export.View{
		"type":                    newView("mallory", 1, "http:80/TCP", "10.6.6.6", headless),
		"the name of a port":      newView("mallory", 1, "http:81/TCP", "10.6.6.6"),
		"internal traffic policy": newView("mallory", 1, "http:80/TCP", "10.6.6.6", local),
	} {
		t.Run(name, func(t *testing.T) {
			observed, before := settled(t, newObserved("east"), contribute(honest))
			contributions := contribute(lie, honest)
			contributions[0].Rank = 1
			result := Merge(observed, contributions)
			diff(t, "type", result.ServiceImport.Spec.Type, before.ServiceImport.Spec.Type)
			diff(t, "IPs", result.ServiceImport.Spec.IPs, before.ServiceImport.Spec.IPs)
			diff(t, "policy", result.ServiceImport.Spec.InternalTrafficPolicy,
				before.ServiceImport.Spec.InternalTrafficPolicy)
			diff(t, "ports", result.ServiceImport.Spec.Ports, before.ServiceImport.Spec.Ports)
			for _, slice := range result.EndpointSlices {
				if slice.Labels[export.LabelSourceCluster] == "east" {
					diff(t, "ports of east", endpointPorts(slice), "http:8080/TCP")
				}
			}
		})
	}
}

func TestRanks(t *testing.T) {
	views := []*export.View{
		newView("a", 3, "80/TCP", ""), newView("b", 2, "80/TCP", "", headless),
		newView("c", 1, "80/TCP", ""), newView("d", 1, "80/TCP", "", headless),
	}
	for name, test := range map[string]struct {
		ranks   []int
		want    []string
		message string
	}{
		"all alike": {
			[]int{0, 0, 0, 0},
			[]string{"c", "d", "b", "a"},
			`Conflicting type. Using "ClusterSetIP" from oldest service export in "c". 2/4 clusters disagree.`,
		},
		"all alike, and not 0": {
			[]int{7, 7, 7, 7},
			[]string{"c", "d", "b", "a"},
			`Conflicting type. Using "ClusterSetIP" from oldest service export in "c". 2/4 clusters disagree.`,
		},
		"the oldest is first by rank too": {
			[]int{0, 0, -1, 0},
			[]string{"c", "d", "b", "a"},
			`Conflicting type. Using "ClusterSetIP" from oldest service export in "c". 2/4 clusters disagree.`,
		},
		"the oldest is last": {
			[]int{0, 0, 1, 0},
			[]string{"d", "b", "a", "c"},
			`Conflicting type. Using "Headless" from first-ranked service export in "d". 2/4 clusters disagree.`,
		},
		"the youngest is first": {
			[]int{-5, 0, 0, 0},
			[]string{"a", "c", "d", "b"},
			`Conflicting type. Using "ClusterSetIP" from first-ranked service export in "a". 2/4 clusters disagree.`,
		},
		"each has its own": {
			[]int{2, 1, 4, 3},
			[]string{"b", "a", "d", "c"},
			`Conflicting type. Using "Headless" from first-ranked service export in "b". 2/4 clusters disagree.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			contributions := contribute(views...)
			for i, rank := range test.ranks {
				contributions[i].Rank = rank
			}
			for range 2 {
				account := Explain(contributions)
				diff(t, "precedence", account.Precedence, test.want)
				diff(t, "ranked", account.Ranked, test.want[0] != "c")
				condition := conditionOf(t, Merge(newObserved("a"), contributions).ExportConditions,
					string(v1beta1.ServiceExportConditionConflict))
				diff(t, "message", condition.Message, test.message)
				slices.Reverse(contributions)
			}
		})
	}
}
