// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// offered is slices of services in the namespace demo, each as "service/name=endpoints".
func offered(text string) []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	for _, word := range strings.Fields(text) {
		var endpoints int
		name, count, _ := strings.Cut(word, "=")
		if _, err := fmt.Sscan(count, &endpoints); err != nil {
			panic(err)
		}
		service, name, _ := strings.Cut(name, "/")
		slice := &discoveryv1.EndpointSlice{Endpoints: make([]discoveryv1.Endpoint, endpoints)}
		slice.Namespace, slice.Name = "demo", name
		slice.Labels = map[string]string{LabelService: service}
		all = append(all, slice)
	}
	return all
}

func demo(service string) types.NamespacedName {
	return types.NamespacedName{Namespace: "demo", Name: service}
}

// TestSelection offers the same slices in many orders, and all give the same.
func TestSelection(t *testing.T) {
	for name, test := range map[string]struct {
		services, endpoints int
		imported            string
		offered             string
		want                string // the slices
		refused             string // the first service, the limit, and the imported ones
	}{
		"nothing":  {services: 1, endpoints: 1, refused: "-"},
		"all fits": {services: 2, endpoints: 5, offered: "a/1=2 a/2=2 b/1=1", want: "a/1 a/2 b/1", refused: "-"},
		"a service too many": {
			services: 2, endpoints: 100, offered: "a/1=2 b/1=1 c/1=1 d/1=1",
			want: "a/1 b/1", refused: "c services",
		},
		"those imported come first": {
			services: 2, endpoints: 100, imported: "d c", offered: "a/1=2 b/1=1 c/1=1 d/1=1",
			want: "c/1 d/1", refused: "a services",
		},
		"more are imported than may": {
			services: 2, endpoints: 100, imported: "a b c d", offered: "a/1=2 b/1=1 c/1=1 d/1=1",
			want: "a/1 b/1", refused: "c services c d",
		},
		"one that is imported is no longer exported": {
			services: 1, endpoints: 100, imported: "z", offered: "a/1=2", want: "a/1", refused: "-",
		},
		"an endpoint too many, and none of those after it": {
			services: 9, endpoints: 4, offered: "a/1=2 a/2=1 b/1=2 c/1=1",
			want: "a/1 a/2", refused: "b endpoints",
		},
		"a slice without endpoints counts": {
			services: 9, endpoints: 2, offered: "a/1=0 b/1=0 c/1=0", want: "a/1 b/1", refused: "c endpoints",
		},
		"both limits": {services: 1, endpoints: 1, offered: "a/1=1 b/1=1 c/1=2", want: "a/1", refused: "b services"},
		"the first alone is too much": {
			services: 9, endpoints: 4, offered: "a/1=3 a/2=2 b/1=1", refused: "a endpoints",
		},
	} {
		t.Run(name, func(t *testing.T) {
			imported := map[types.NamespacedName]struct{}{}
			for _, service := range strings.Fields(test.imported) {
				imported[demo(service)] = struct{}{}
			}
			for range 200 {
				all := offered(test.offered)
				rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				s := NewSelection(Limits{Services: test.services, Endpoints: test.endpoints}, imported)
				for _, slice := range all {
					s.Offer(demo(slice.Labels[LabelService]), slice)
				}
				var got []string
				for _, slice := range s.Slices() {
					got = append(got, slice.Labels[LabelService]+"/"+slice.Name)
				}
				slices.Sort(got)
				if text := strings.Join(got, " "); text != test.want {
					t.Fatalf("took %q, want %q", text, test.want)
				}
				refused := "-"
				if first, hit, any := s.Refused(); any {
					words := []string{}
					for _, service := range s.RefusedImported() {
						words = append(words, service.Name)
					}
					slices.Sort(words)
					refused = strings.Join(append([]string{first.Name, string(hit)}, words...), " ")
				}
				if refused != test.refused {
					t.Fatalf("refused %q, want %q", refused, test.refused)
				}
			}
		})
	}
}

// TestSelectionHoldsNoMoreThanItMay offers without end.
func TestSelectionHoldsNoMoreThanItMay(t *testing.T) {
	s := NewSelection(Limits{Services: 10, Endpoints: 20}, nil)
	for i := range 10_000 {
		for _, slice := range offered(fmt.Sprintf("s%d/1=1", 9_999-i)) {
			s.Offer(demo(slice.Labels[LabelService]), slice)
		}
		if len(s.taken) > 10 || s.weight > 20 || s.order.Len() != len(s.taken) || len(s.refused) > 0 {
			t.Fatalf("%d services of weight %d are held, %d in order", len(s.taken), s.weight, s.order.Len())
		}
	}
	if len(s.Slices()) != 10 {
		t.Errorf("took %d", len(s.Slices()))
	}
}

func TestWeight(t *testing.T) {
	large := offered("a/1=3")[0]
	large.Annotations = map[string]string{"k": strings.Repeat("x", 5<<10)}
	for want, slice := range map[int]*discoveryv1.EndpointSlice{1: offered("a/1=0")[0], 7: offered("a/1=7")[0], 5: large} {
		if got := Weight(slice); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
}

// TestSliceThatIsTooLarge is refused as a whole: what was known of it stays,
// and nothing comes of one that was not known.
func TestSliceThatIsTooLarge(t *testing.T) {
	limits := Limits{SliceBytes: 4 << 10}
	view, _, _ := FromService("west", newExport(), newService("http:80/TCP"), nil)
	published := publish(view)[0]
	if same, fits := limits.Fitting(published); !fits || same != published || IsStandIn(same) {
		t.Fatalf("a small slice became %v", same)
	}
	published.Annotations["note"] = strings.Repeat("x", 4<<10)
	published.Endpoints = make([]discoveryv1.Endpoint, 1000)
	standIn, fits := limits.Fitting(published)
	if fits || !IsStandIn(standIn) || standIn.Size() > 512 || standIn.Name != published.Name {
		t.Fatalf("a large slice became %v", standIn)
	}
	from := Source{Cluster: "west"}
	for name, previous := range map[string]*View{"known": view, "not known": nil} {
		got, problems := FromSlices(from, web, []*discoveryv1.EndpointSlice{standIn}, previous)
		if (got != nil) != (previous != nil) {
			t.Errorf("%s: the view is %v", name, got)
		}
		if len(problems) != 1 || problems[0].Reason != ReasonTooLarge {
			t.Errorf("%s: the problems are %v", name, problems)
		}
	}
}
