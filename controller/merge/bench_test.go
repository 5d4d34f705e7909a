// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// BenchmarkMerge merges a service of so many clusters and endpoints, 100 in a slice, in one of them, at rest.
func BenchmarkMerge(b *testing.B) {
	for _, clusters := range []int{2, 20, 200} {
		for _, endpoints := range []int{10, 1000, 10000} {
			for _, demote := range []bool{false, true} {
				name := fmt.Sprintf("clusters=%d/endpoints=%d", clusters, endpoints)
				if demote {
					name += "/demoted=1"
				}
				b.Run(name, func(b *testing.B) {
					contributions := sized(clusters, endpoints)
					contributions[1].Demote = demote
					observed, _ := settled(b, newObserved("cluster-0"), contributions)
					b.ReportAllocs()
					for b.Loop() {
						Merge(observed, contributions)
					}
				})
			}
		}
	}
}

func sized(clusters, endpoints int) []Contribution {
	var all []Contribution
	for c := range clusters {
		view := newView(fmt.Sprintf("cluster-%d", c), 1+c%28, "http:80/TCP metrics:9090/TCP", "",
			labels("team=red", "tier=front"))
		view.Slices = nil
		for first := c; first < endpoints || first == c; first += 100 * clusters {
			slice := newSlice(fmt.Sprintf("web-cluster-%d-%06d", c, first), "http:80/TCP metrics:9090/TCP", "")
			for i := first; i < min(first+100*clusters, endpoints); i += clusters {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
					Addresses:  []string{fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)},
					Conditions: export.Conditions(true, true, false),
				})
			}
			view.Slices = append(view.Slices, slice)
		}
		all = append(all, Contribution{View: view})
	}
	return all
}
