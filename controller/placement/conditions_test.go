// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

func asks(key, value string) func(*export.View) {
	return func(view *export.View) { view.Spec.Annotations = map[string]string{key: value} }
}

// TestBorder: what is outside is not used, not even if nothing else is left, and not silently.
func TestBorder(t *testing.T) {
	for name, test := range map[string]struct{ within, used, told string }{
		"none":               {"", "10.1.0.1 10.2.0.1 10.3.0.1", ""},
		"a region":           {"same(region)", "10.1.0.1 10.2.0.1", `True Limited Endpoints of these clusters are used: same(region); not "west".`},
		"all":                {"*", "10.1.0.1 10.2.0.1 10.3.0.1", "True Limited Endpoints of these clusters are used: *; all exporting clusters are inside."},
		"only another":       {"west", "10.1.0.1 10.3.0.1", `True Limited Endpoints of these clusters are used: west; not "near".`},
		"invalid, so local":  {"one two", "10.1.0.1", `False InvalidBorder`},
		"unknown properties": {"same(planet)", "10.1.0.1", `True Limited Endpoints of these clusters are used: same(planet); not "near", "west".`},
	} {
		t.Run(name, func(t *testing.T) {
			views := contribute(
				newView("east", 1, "80/TCP", "10.1.0.1", asks(export.AnnotationWithin, test.within)),
				newView("near", 2, "80/TCP", "10.2.0.1"), newView("west", 3, "80/TCP", "10.3.0.1"))
			observed := newObserved("east")
			observed.Properties = regions
			_, result := settled(t, observed, views)
			diff(t, "used", usedText(result), test.used)
			diff(t, "slices", len(result.EndpointSlices), 3)
			diff(t, "clusters", len(result.ServiceImport.Status.Clusters), 3)
			told := ""
			if c := meta.FindStatusCondition(result.ServiceImport.Status.Conditions, ConditionWithin); c != nil {
				told = string(c.Status) + " " + c.Reason + " " + c.Message
			}
			if !strings.HasPrefix(told, test.told) || test.told == "" && told != "" {
				t.Errorf("got  %s\nwant %s", told, test.told)
			}

			// Nothing is left inside.
			views[0].View.Slices[0].Endpoints, views[1].View.Slices[0].Endpoints = nil, nil
			used := usedText(merged(observed, views))
			if inside := strings.Contains(test.used, "10.3.0.1"); inside != (used == "10.3.0.1") || !inside && used != "" {
				t.Errorf("with nothing else, %q is used", used)
			}
		})
	}
}

// TestOnlyExportsSetTheBorder: a border that another writer sets on an import has no effect, and is removed.
func TestOnlyExportsSetTheBorder(t *testing.T) {
	views := contribute(newView("east", 1, "80/TCP", "10.1.0.1"), newView("west", 2, "80/TCP", "10.2.0.1"))
	observed, _ := settled(t, newObserved("east"), views)
	observed.ServiceImport.Annotations[export.AnnotationWithin] = "local"
	result := merged(observed, views)
	diff(t, "used", usedText(result), "10.1.0.1 10.2.0.1")
	diff(t, "annotation", result.ServiceImport.Annotations[export.AnnotationWithin], "")
}

// addresses are so many of a cluster.
func addresses(cluster, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("10.%d.0.%d", cluster, i+1))
	}
	return strings.Join(all, " ")
}

// readyIn counts the ready endpoints of clusters.
func readyIn(result merge.Result) map[string]int {
	all := map[string]int{}
	for _, slice := range result.EndpointSlices {
		for _, endpoint := range slice.Endpoints {
			if isReady(&endpoint) {
				all[slice.Labels[export.LabelSourceCluster]]++
			}
		}
	}
	return all
}

// TestWeights checks how many endpoints of east, west and north are used, and the condition.
func TestWeights(t *testing.T) {
	const met = "True InEffect The shares are those asked for, as far as whole endpoints allow: "
	for name, test := range map[string]struct {
		weights, prefer string
		ready           [3]int
		silent          string
		used            string // as in counts
		told            string
	}{
		"a canary":                          {"west=10", "", [3]int{9, 3, 0}, "", "east=9 west=1", met + "west 10 %."},
		"too few":                           {"west=50", "", [3]int{9, 3, 0}, "", "east=9 west=3", "False OtherShares IPv4: west asked 50 %, has less: too few of its endpoints are ready."},
		"the whole":                         {"west=100", "", [3]int{9, 3, 3}, "", "west=3", met + "west 100 %."},
		"the whole of nothing":              {"west=100", "", [3]int{2, 0, 1}, "", "east=2 north=1", "False OtherShares IPv4: west asked 100 %, has none: no endpoint of it is ready and used first."},
		"nothing":                           {"west=0", "", [3]int{2, 3, 0}, "", "east=2", met + "west 0 %."},
		"in its tier":                       {"west=25", "north", [3]int{3, 3, 3}, "", "north=3", "False OtherShares IPv4: west asked 25 %, has none: no endpoint of it is ready and used first."},
		"in the next tier":                  {"west=25", "north", [3]int{3, 3, 0}, "", "east=3 west=1", met + "west 25 %."},
		"silent":                            {"west=25", "", [3]int{3, 3, 0}, "west", "east=3", "False OtherShares IPv4: west asked 25 %, has none: no endpoint of it is ready and used first."},
		"at least one":                      {"west=1", "", [3]int{9, 3, 0}, "", "east=9 west=1", "False OtherShares IPv4: west asked 1 %, has more: too few endpoints of others are ready."},
		"not in its tier, of few endpoints": {"west=10", "east", [3]int{5, 5, 0}, "", "east=5", "False OtherShares IPv4: west asked 10 %, has none: no endpoint of it is ready and used first."},
		"the smallest share of the fewest endpoints": {"west=1", "", [3]int{1, 0, 0}, "", "east=1", "False OtherShares IPv4: west asked 1 %, has none: no endpoint of it is ready and used first."},
		"a misspelled id":             {"wst=10", "", [3]int{2, 2, 0}, "", "east=2 west=2", "False OtherShares IPv4: wst asked 10 %, has none: no exporting cluster has this id."},
		"nothing for a misspelled id": {"wst=0, west=50", "", [3]int{2, 2, 0}, "", "east=2 west=2", met + "west 50 %, wst 0 % (no exporting cluster has this id)."},
		"more than a whole":           {"west=70, east=40", "", [3]int{40, 70, 5}, "", "east=40 west=70", met + "east 40 %, west 70 %."},
		"more than a whole, of many":  {"west=99, east=98", "", [3]int{196, 198, 0}, "", "east=196 west=198", met + "east 98 %, west 99 %."},
		"nothing is ready":            {"west=25", "", [3]int{0, 0, 0}, "", "", "False OtherShares No endpoint is ready."},
		"invalid":                     {"west=much", "", [3]int{2, 3, 0}, "", "east=2 west=3", `False InvalidWeights Exported annotation clusterset-dns.github.io/weights: "west=much" are no weights: use <cluster id>=<0 to 100>, separated by commas.`},
	} {
		t.Run(name, func(t *testing.T) {
			var views []merge.Contribution
			for i, cluster := range []string{"east", "west", "north"} {
				view := newView(cluster, i+1, "80/TCP", addresses(i, test.ready[i]), asks(export.AnnotationWeights, test.weights))
				if test.prefer != "" {
					view.Spec.Annotations[export.AnnotationPrefer] = test.prefer
				}
				views = append(views, merge.Contribution{View: view, Demote: cluster == test.silent})
			}
			_, result := settled(t, newObserved("east"), views)
			diff(t, "used", readyIn(result), counts(t, test.used))
			c := conditionOf(t, result.ServiceImport.Status.Conditions, ConditionWeights)
			diff(t, "told", fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message), test.told)
		})
	}
}

// TestWeightsOfNone: a cluster that takes no part has no share, however few endpoints there are.
func TestWeightsOfNone(t *testing.T) {
	for asks, want := range map[string]string{
		export.AnnotationWithin + "=north":   "IPv4: west asked 10 %, has none: it is outside of the border.",
		export.AnnotationPrefer + "=cluster": "IPv4: west asked 10 %, has none: hints put it before the others.",
	} {
		observed := newObserved("west")
		if strings.Contains(asks, "north") {
			observed.Cluster = "east"
		} else {
			observed.Nodes = Nodes{Zones: []string{"zone-a"}}
		}
		result := merged(observed, contribute(
			newView("east", 1, "80/TCP", "10.1.0.1", annotations(export.AnnotationWeights+"=west=10", asks)),
			newView("west", 2, "80/TCP", "10.2.0.1")))
		c := conditionOf(t, result.ServiceImport.Status.Conditions, ConditionWeights)
		diff(t, asks, c.Reason+" "+c.Message, "OtherShares "+want)
	}
}

// TestWeightsOfFamilies: each family has its own shares.
func TestWeightsOfFamilies(t *testing.T) {
	both := families(corev1.IPv4Protocol, corev1.IPv6Protocol)
	east := newView("east", 1, "80/TCP", addresses(1, 3), asks(export.AnnotationWeights, "west=50"), both)
	west := newView("west", 2, "80/TCP", addresses(2, 5), both)
	east.Slices = append(east.Slices, newSlice("web-east-6", "80/TCP", "fd00::1"))
	west.Slices = append(west.Slices, newSlice("web-west-6", "80/TCP", "fd01::1 fd01::2 fd01::3"))
	result := merged(newObserved("north"), contribute(east, west))
	diff(t, "ready", readyIn(result), map[string]int{"east": 4, "west": 4})
	diff(t, "told", conditionOf(t, result.ServiceImport.Status.Conditions, ConditionWeights).Message,
		"The shares are those asked for, as far as whole endpoints allow: west 50 %.")
}

// TestTheMessageIsStable: the condition of weights stays the same while pods are replaced.
func TestTheMessageIsStable(t *testing.T) {
	for weights, reason := range map[string]string{"west=10": ReasonInEffect, "west=90": ReasonOtherShares} {
		messages := map[string]bool{}
		for surge := range 6 {
			_, result := settled(t, newObserved("east"), contribute(
				newView("east", 1, "80/TCP", addresses(1, 20+surge), asks(export.AnnotationWeights, weights)),
				newView("west", 2, "80/TCP", addresses(2, 10-surge/2))))
			c := conditionOf(t, result.ServiceImport.Status.Conditions, ConditionWeights)
			diff(t, "reason", c.Reason, reason)
			messages[c.Message] = true
		}
		if len(messages) != 1 {
			t.Errorf("%s: %v", weights, messages)
		}
	}
}
