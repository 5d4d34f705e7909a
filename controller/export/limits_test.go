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
		name, count, _ := strings.Cut(word, "=") // "service=endpoints" has no name
		if _, err := fmt.Sscan(count, &endpoints); err != nil {
			panic(err)
		}
		service, name, _ := strings.Cut(name, "/")
		slice := &discoveryv1.EndpointSlice{Endpoints: make([]discoveryv1.Endpoint, endpoints)}
		slice.Namespace, slice.Name = "demo", name
		slice.Labels = map[string]string{LabelService: service}
		if name == "6" {
			slice.AddressType = discoveryv1.AddressTypeIPv6
		}
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
		imported            string // each as service=endpoints of its copies
		offered             string
		want                string // the slices
		refused             string // the first service, the limit, and those withheld
		bytes               int    // of how many slices with one endpoint; 0 for no limit
		gone                bool
	}{
		"nothing":  {services: 1, endpoints: 1, refused: "-"},
		"all fits": {services: 2, endpoints: 5, offered: "a/1=2 a/2=2 b/1=1", want: "a/1 a/2 b/1", refused: "-"},
		"a service too many": {
			services: 2, endpoints: 100, offered: "a/1=2 b/1=1 c/1=1 d/1=1",
			want: "a/1 b/1", refused: "c services",
		},
		"those imported come first": {
			services: 2, endpoints: 100, imported: "d=1 c=1", offered: "a/1=2 b/1=1 c/1=1 d/1=1",
			want: "c/1 d/1", refused: "a services",
		},
		"more are imported than may": {
			services: 2, endpoints: 3, imported: "a=1 b=1 c=1 d=1", offered: "a/1=1 b/1=1 c/1=1 d/1=1 e/1=1",
			want: "a/1 b/1 c/1 d/1", refused: "e services",
		},
		"imported ones that grow at the limit are withheld from the first on": {
			services: 9, endpoints: 6, imported: "a=1 b=1 c=2 d=1",
			offered: "a/1=1 a/2=1 b/1=2 b/2=3 c/1=2 d/1=2 e/1=1",
			want:    "a/1 a/2 c/1", refused: "b endpoints b d",
		},
		"what is withheld counts as it was": {
			services: 9, endpoints: 5, imported: "a=1 b=3", offered: "a/1=2 a/2=1 b/1=4", refused: "a endpoints a b",
		},
		"one that is imported is no longer exported": {
			services: 1, endpoints: 100, imported: "z=1", offered: "a/1=2", refused: "a services", gone: true,
		},
		"memory": {
			services: 9, endpoints: 9, bytes: 2, offered: "a/1=1 b/1=1 c/1=1",
			want: "a/1 b/1", refused: "c memory",
		},
		"memory of what is imported": {
			services: 9, endpoints: 9, bytes: 2, imported: "c=1 d=1 e=1",
			offered: "a/1=1 c/1=1 d/1=1 e/1=1", want: "c/1 d/1 e/1", refused: "a memory",
		},
		"an endpoint counts for one family": {
			services: 9, endpoints: 3, offered: "a/1=3 a/6=3 b/6=1", want: "a/1 a/6",
			refused: "b endpoints",
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
			imported := map[types.NamespacedName]Weight{}
			for _, slice := range offered(test.imported) {
				slice.Name = "1"
				imported[demo(slice.Labels[LabelService])] = WeightOf(slice)
			}
			room := test.bytes * WeightOf(offered("a/1=1")[0]).Bytes
			for range 200 {
				all := offered(test.offered)
				rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				s := NewSelection(Limits{Services: test.services, Endpoints: test.endpoints}, imported,
					func(bytes int) bool { return room == 0 || bytes <= room })
				for _, slice := range all {
					s.Offer(demo(slice.Labels[LabelService]), slice)
				}
				var got []string
				for _, each := range s.Slices() {
					slice := each.OpenMetadata()
					got = append(got, slice.Labels[LabelService]+"/"+slice.Name)
				}
				slices.Sort(got)
				if text := strings.Join(got, " "); text != test.want {
					t.Fatalf("took %q, want %q", text, test.want)
				}
				refused := "-"
				if first, hit, any := s.Refused(); any {
					words := []string{}
					for service := range s.Withheld() {
						words = append(words, service.Name)
					}
					slices.Sort(words)
					refused = strings.Join(append([]string{first.Name, string(hit)}, words...), " ")
				}
				if refused != test.refused || s.Gone() != test.gone {
					t.Fatalf("refused %q, want %q; gone: %t", refused, test.refused, s.Gone())
				}
			}
		})
	}
}

// TestSelectionHoldsNoMoreThanItMay offers without end.
func TestSelectionHoldsNoMoreThanItMay(t *testing.T) {
	s := NewSelection(Limits{Services: 10, Endpoints: 20}, nil, nil)
	for i := range 10_000 {
		for _, slice := range offered(fmt.Sprintf("s%d/1=1", 9_999-i)) {
			s.Offer(demo(slice.Labels[LabelService]), slice)
		}
		if len(s.taken) > 10 || s.endpoints > 20 || s.services != len(s.taken) || s.order.Len() != len(s.taken) ||
			len(s.withheld) > 0 {
			t.Fatalf("%d services of weight %d are held, %d in order", len(s.taken), s.endpoints, s.order.Len())
		}
	}
	if len(s.Slices()) != 10 {
		t.Errorf("took %d", len(s.Slices()))
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

// TestDualStackPodsCountOnce: 80,000 dual-stack pods have an endpoint in a slice
// of each family, and fit into a limit of 150,000.
func TestDualStackPodsCountOnce(t *testing.T) {
	s := NewSelection(DefaultLimits, nil, nil)
	endpoints := make([]discoveryv1.Endpoint, 100)
	for service := range 800 {
		for _, addressType := range []discoveryv1.AddressType{
			discoveryv1.AddressTypeIPv4,
			discoveryv1.AddressTypeIPv6,
		} {
			s.Offer(demo(fmt.Sprint("s", service)), &discoveryv1.EndpointSlice{
				AddressType: addressType,
				Endpoints:   endpoints,
			})
		}
	}
	if first, limit, any := s.Refused(); any || s.endpoints != 80_000 {
		t.Errorf("%v is refused by limit %s; %d endpoints", first, limit, s.endpoints)
	}
}
