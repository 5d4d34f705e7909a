// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// TestAllowedClusters: endpoints outside are never used, even if no others are left, and the condition says so.
func TestAllowedClusters(t *testing.T) {
	const prefix = "True InEffect Only endpoints of these clusters are used: "
	const invalid = "False InvalidAnnotation Exported annotation clusterset-dns.github.io/allowed-clusters: "
	for name, test := range map[string]struct {
		within, down string
		used         string // as in orderText
		told         string // its beginning
	}{
		"none":              {"", "", "east near south west", ""},
		"a region":          {"same(region)", "", "east near south! west!", prefix + `same(region).`},
		"nothing is inside": {"same(region)", "east near", "east! near! south! west!", prefix + `same(region).`},
		"a list":            {"east, west", "", "east near! south! west!", invalid},
		"empty":             {"", "", "east near! south! west!", invalid},
		"endless":           {strings.Repeat("x", 1<<16), "", "east near! south! west!", invalid},
	} {
		t.Run(name, func(t *testing.T) {
			odd := map[string]string{}
			for _, cluster := range strings.Fields(test.down) {
				odd[cluster] = "down"
			}
			asks := "allowed-clusters=" + test.within
			if name == "none" {
				asks = "prefer="
			}
			_, result := settled(t, newObserved(), exporting(t, asks, "east=1 near=1 west=1 south=1", odd))
			diff(t, "used", orderText(result), test.used)
			diff(t, "clusters", len(result.ServiceImport.Status.Clusters), 4)
			told := told(result, ConditionAllowedClusters)
			if !strings.HasPrefix(told, test.told) || test.told == "" && told != "" || len(told) > 700 {
				t.Errorf("got  %s\nwant %s", told, test.told)
			}
		})
	}
}

// readyIn counts the ready endpoints of clusters.
func readyIn(result merge.Result) map[string]int {
	all := map[string]int{}
	for _, slice := range result.EndpointSlices {
		for _, endpoint := range slice.Endpoints {
			if export.IsReady(&endpoint) {
				all[slice.Labels[export.LabelSourceCluster]]++
			}
		}
	}
	return all
}

// TestWeights checks how many endpoints of the clusters are used, and the condition.
func TestWeights(t *testing.T) {
	const met = "True InEffect The shares are those asked for, as far as whole endpoints allow: "
	for name, test := range map[string]struct {
		weights, others string // the requested weights
		ready           string
		silent          string
		used            string
		told            string
	}{
		"a canary":                    {"west=10", "", "east=9 west=3", "", "east=9 west=1", met + "west=10."},
		"too few":                     {"west=50", "", "east=9 west=3", "", "east=9 west=3", "False OtherShares IPv4: other shares than asked for: west=50."},
		"nothing":                     {"west=0", "", "east=2 west=3", "", "east=2", met + "west=0."},
		"nothing, and no others":      {"west=0", "", "west=3", "", "west=3", "False OtherShares IPv4: other shares than asked for: west=0."},
		"in the next tier":            {"west=25", "prefer=south", "east=3 west=3", "", "east=3 west=1", met + "west=25."},
		"silent":                      {"west=25", "", "east=3 west=3", "west", "east=3", "False OtherShares IPv4: other shares than asked for: west=25."},
		"hinted":                      {"east=10", "prefer=cluster", "east=1 west=1", "", "east=1 west=1", "False OtherShares IPv4: other shares than asked for: east=10."},
		"a misspelled id":             {"wst=10", "", "east=2 west=2", "", "east=2 west=2", "False OtherShares IPv4: other shares than asked for: wst=10."},
		"nothing for a misspelled id": {"wst=0, west=50", "", "east=2 west=2", "", "east=2 west=2", met + "wst=0, west=50."},
		"more than a whole":           {"west=70, east=40", "", "east=40 west=70 south=5", "", "east=40 west=70", met + "west=70, east=40."},
		"nothing is ready":            {"west=25", "", "", "", "", "False OtherShares No endpoint is ready."},
		"invalid":                     {"west=much", "", "east=2 west=3", "", "east=2 west=3", `False InvalidAnnotation Exported annotation clusterset-dns.github.io/weights: "west=much" are no weights: use <cluster id>=<0 to 100>, separated by commas.`},
	} {
		t.Run(name, func(t *testing.T) {
			_, result := settled(t, newObserved("zone-a"),
				exporting(t, "weights="+test.weights+"|"+test.others, test.ready, map[string]string{test.silent: "silent"}))
			diff(t, "used", readyIn(result), counts(t, test.used))
			diff(t, "told", told(result, ConditionWeights), test.told)
		})
	}
}

// TestWeightsOfFamilies: each family has its own shares.
func TestWeightsOfFamilies(t *testing.T) {
	contributions := exporting(t, "weights=west=50", "east=3 west=5", nil, families(corev1.IPv4Protocol, corev1.IPv6Protocol))
	for i, addresses := range map[int]string{0: "fd00::1", 2: "fd01::1 fd01::2 fd01::3"} {
		view := contributions[i].View
		view.Slices = append(view.Slices, newSlice(fmt.Sprint("web-6-", i), "80/TCP", addresses))
	}
	result := merged(newObserved(), contributions)
	diff(t, "ready", readyIn(result), map[string]int{"east": 4, "west": 4})
	diff(t, "told", told(result, ConditionWeights),
		"True InEffect The shares are those asked for, as far as whole endpoints allow: west=50.")
}
