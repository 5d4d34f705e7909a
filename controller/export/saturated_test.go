// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

func TestSaturated(t *testing.T) {
	for _, test := range []struct {
		says, below string
		ready, all  int
		want, wrong bool
		was         bool
	}{
		{"", "", 0, 4, false, false, false},
		{"true", "", 4, 4, true, false, false},
		{"false", "", 4, 4, false, false, false},
		{"yes", "", 4, 4, false, true, false},
		{"True", "", 4, 4, false, true, false},
		{"1", "50", 1, 4, true, true, false},
		{"", "50", 2, 4, false, false, false},
		{"", "50", 1, 4, true, false, false},
		{"", "100", 3, 4, true, false, false},
		{"", "1", 0, 4, true, false, false},
		{"", "50", 0, 0, false, false, false},
		{"true", "0", 4, 4, true, false, false},
		{"", "0", 0, 4, false, true, false},
		{"", "101", 0, 4, false, true, false},
		{"", "50%", 0, 4, false, true, false},
		{"", strings.Repeat("5", 1000), 0, 4, false, true, false},
		// What is saturated stays so up to 10 points more, or half of what is left.
		{"", "50", 50, 100, true, false, true},
		{"", "50", 59, 100, true, false, true},
		{"", "50", 60, 100, false, false, true},
		{"", "1", 10, 100, true, false, true},
		{"", "1", 11, 100, false, false, true},
		{"", "90", 94, 100, true, false, true},
		{"", "90", 95, 100, false, false, true},
		{"", "99", 99, 100, false, false, true},
		{"", "100", 99, 100, true, false, true},
		{"", "100", 100, 100, false, false, true},
		{"", "50", 0, 0, false, false, true},
		{"", "", 50, 100, false, false, true},
		{"", "0", 50, 100, false, true, true},
	} {
		serviceExport := &v1beta1.ServiceExport{}
		serviceExport.Annotations = map[string]string{AnnotationSaturated: test.says, AnnotationSaturatedBelow: test.below}
		var endpoints []discoveryv1.Endpoint
		for i := range test.all {
			endpoints = append(endpoints, discoveryv1.Endpoint{Conditions: Conditions(i < test.ready, i < test.ready, false)})
		}
		var found problems
		if got := saturated(serviceExport, []Slice{{Endpoints: endpoints}}, func() bool { return test.was }, &found); got != test.want {
			t.Errorf("%+v: got %t", test, got)
		}
		if (len(found.list) > 0) != test.wrong {
			t.Errorf("%+v: problems %v", test, found.list)
		}
	}
}

// TestSaturatedInvalid: each invalid annotation is reported.
func TestSaturatedInvalid(t *testing.T) {
	_, found, _ := FromService(Exporter{Cluster: "east"}, newExport(func(e *v1beta1.ServiceExport) {
		e.Annotations = map[string]string{AnnotationSaturated: "yes", AnnotationSaturatedBelow: "50%"}
	}), newService("80/TCP"), nil)
	diff(t, "problems", texts(found), []string{
		`BadMetadata: ServiceExport demo/web: annotation clusterset-dns.github.io/saturated is "yes" and has no effect: ` +
			`use true or false`,
		`BadMetadata: ServiceExport demo/web: annotation clusterset-dns.github.io/saturated-below is "50%" and has no ` +
			`effect: use 1 to 100`,
	})
}

// TestSaturatedRemembers: with its published slices as the only memory, a cluster changes only when the share of ready
// endpoints leaves the band on the other side.
func TestSaturatedRemembers(t *testing.T) {
	const all = 40
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		below := 1 + r.IntN(100)
		exported := newExport(func(e *v1beta1.ServiceExport) {
			e.Annotations = map[string]string{AnnotationSaturatedBelow: strconv.Itoa(below)}
			if r.IntN(3) == 0 {
				e.Annotations[AnnotationClusters] = "east; west"
			}
		})
		var published []*discoveryv1.EndpointSlice
		want, ready := false, r.IntN(all+1)
		for range 30 {
			ready = min(max(ready+r.IntN(9)-4, 0), all)
			var slices []*discoveryv1.EndpointSlice
			for i, n := range []int{min(ready, all/2), max(ready-all/2, 0)} {
				var endpoints []string
				for j := range all / 2 {
					mark := "!"
					if j < n {
						mark = ""
					}
					endpoints = append(endpoints, fmt.Sprintf("%s10.1.%d.%d", mark, i, j))
				}
				slices = append(slices, newSlice(fmt.Sprint("web-", i), "80/TCP", strings.Join(endpoints, " ")))
			}
			slices = append(slices, published...)
			r.Shuffle(len(slices), func(i, j int) { slices[i], slices[j] = slices[j], slices[i] })
			view := mustView(t, exported, newService("80/TCP"), slices...)
			switch percent := 100 * float64(ready) / all; {
			case percent < float64(below):
				want = true
			case percent >= float64(below+min(10, (100-below)/2)):
				want = false
			}
			if got := view.Spec.Saturated; got != want {
				t.Fatalf("seed %d: %d of %d are ready, the limit is %d: got %t", seed, ready, all, below, got)
			}
			if len(view.Slices) != 2 {
				t.Fatalf("seed %d: %d slices are exported", seed, len(view.Slices))
			}
			if next := publish(view); r.IntN(4) > 0 || len(published) == 0 {
				published = next
			} else {
				published[0] = next[0] // it was killed before it wrote the other one
			}
			if want != saidSaturated("east", published) {
				published = publish(view) // and it writes it when it starts
			}
			if saidSaturated("west", published) {
				t.Fatal("a copy says that this cluster is saturated")
			}
		}
	}
}
