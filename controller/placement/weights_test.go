// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

func TestParseWeights(t *testing.T) {
	for text, want := range map[string]string{
		"": "map[]", "west=10": "map[west:10]", " west = 10 ,eu.north=0": "map[eu.north:0 west:10]",
		"west=100, east=100": "map[east:100 west:100]",
		"west":               "error", "west=": "error", "=1": "error", "west=-1": "error", "west=101": "error", "west=1,": "error",
		"west=1.5": "error", "west=1, west=2": "error", "west=10%": "error", strings.Repeat("a", 1<<16): "error",
		"a=1" + strings.Repeat(",b=1", 70): "error",
	} {
		weights, err := parseWeights(text)
		got := fmt.Sprint(map[string]int(weights))
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%.50q: got %s, want %s", text, got, want)
		}
	}
}

// TestShares has rows of weights that TestWeights and TestEachShares have not: how many endpoints are used, and the weights of
// SRV records, also those that are rounded away or of nobody.
func TestShares(t *testing.T) {
	for _, test := range []struct{ weights, ready, used, each string }{
		{"west=1", "east=99 west=3", "east=99 west=1", "east=512 west=168"},
		{"west=50", "east=4 west=10", "east=4 west=4", "east=6400 west=2560"}, // as many
		{"west=75", "east=4 west=20", "east=4 west=12", "east=3200 west=1920"},
		{"west=10, north=20", "east=7 west=5 north=5", "east=7 north=2 west=1", "east=5120 north=2048 west=1024"},
		{"west=70, east=30", "east=10 west=7 north=5", "east=3 north=0 west=7", "east=1536 north=0 west=5120"},
		{"west=100, east=0", "east=10 west=7", "east=0 west=7", "east=0 west=7424"},
		{"west=10", "east=0 west=3", "east=0 west=3", "east=0 west=1728"},                                      // nothing else is ready
		{"west=10, north=30", "east=0 west=3 north=8", "east=0 north=8 west=3", "east=0 north=1920 west=1728"}, // their ratio, 1 to 3
		{"west=0", "east=0 west=3", "east=0 west=0", "east=0 west=0"},
		{"west=10", "east=5 west=0", "east=5 west=0", "east=10240 west=0"},
		{"west=10, north=20", "east=9 west=5 north=0", "east=9 north=0 west=1", "east=5120 north=0 west=1024"}, // 10 % without north
		{"west=50, north=50", "east=9 west=5 north=0", "east=0 north=0 west=5", "east=0 north=0 west=5120"},    // still nothing for east
		{"gone=100", "east=9 west=5", "east=0 west=0", "east=0 west=0"},
		{"west=10", "east=9 west=3", "east=9 west=1", "east=5120 west=1728"},
		{"west=0", "east=3 west=3", "east=3 west=0", "east=17408 west=0"},
		{"west=100", "east=3 west=1", "east=0 west=1", "east=0 west=51200"},
		{"west=70, east=30", "east=1 west=7 north=5", "east=1 north=0 west=2", "east=15360 north=0 west=5120"},
		{"west=10, north=20", "east=7 west=1 north=0", "east=7 north=0 west=1", "east=6656 north=0 west=5120"},
		{"west=1", "east=1 west=100000", "east=1 west=1", "east=51200 west=1"},
	} {
		weights, err := parseWeights(test.weights)
		if err != nil {
			t.Fatal(err)
		}
		ready := counts(t, test.ready)
		diff(t, test.weights+" of "+test.ready+": used", weights.Used(ready), counts(t, test.used))
		diff(t, test.weights+" of "+test.ready+": in SRV records", weights.each(ready), counts(t, test.each))
	}
}

// TestEachShares: the weight of a cluster with a share is that share of each of its endpoints, rounded to five bits or to
// a whole number. It depends on no other cluster, so slices can be written one by one without a wrong share meanwhile.
// Clusters without a share of their own divide the rest.
func TestEachShares(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 1))
		weights := Weights{"west": 1 + r.IntN(59), "north": 1 + r.IntN(39)}
		if r.IntN(3) == 0 { // more than 100 together
			weights["west"], weights["north"] = weights["west"]+50, weights["north"]+50
		}
		most := 1 + r.IntN(2000)
		ready := map[string]int{
			"east": 1 + r.IntN(most), "south": r.IntN(most), "west": 1 + r.IntN(most), "north": 1 + r.IntN(most),
		}
		rest := float64(max(0, 100-weights["west"]-weights["north"])) / float64(ready["east"]+ready["south"])
		for cluster, weight := range weights.each(ready) {
			exact := 512 * rest
			if share, found := weights[cluster]; found {
				exact = 512 * float64(share) / float64(ready[cluster])
			}
			if exact == 0 || ready[cluster] == 0 {
				if weight != 0 {
					t.Errorf("%v of %v: %s has %d instead of nothing", weights, ready, cluster, weight)
				}
				continue
			}
			off := math.Abs(float64(weight) - exact)
			if weight < 1 || weight > math.MaxUint16 || off > max(exact/32, 0.5) && (exact > 1 || weight != 1) {
				t.Errorf("%v of %v: %s has weight %d, exactly %.2f", weights, ready, cluster, weight, exact)
			}
		}
	}
}

// TestPlaces: more or fewer endpoints, and one that comes or goes, move as few as possible, in any order.
func TestPlaces(t *testing.T) {
	imported := &v1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web"}}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		var addresses []string
		for i := range 2 + r.IntN(30) {
			addresses = append(addresses, fmt.Sprintf("10.0.%d.%d", seed%7, i))
		}
		chosen := func(addresses []string, n int) sets.Set[string] {
			view := &export.View{Slices: []export.Slice{{AddressType: discoveryv1.AddressTypeIPv4}}}
			for _, i := range r.Perm(len(addresses)) {
				endpoint := discoveryv1.Endpoint{Addresses: addresses[i : i+1]}
				view.Slices[0].Endpoints = append(view.Slices[0].Endpoints, endpoint, endpoint)
			}
			positions := (&placement{imported: imported}).positionsOf(view, discoveryv1.AddressTypeIPv4)
			last, result := positions[n-1], sets.New[string]()
			for i, address := range addresses {
				if positionOf(imported, &discoveryv1.Endpoint{Addresses: addresses[i:]}).compare(last) <= 0 {
					result.Insert(address)
				}
			}
			return result
		}
		n := 1 + r.IntN(len(addresses)-1)
		few, more := chosen(addresses, n), chosen(addresses, n+1)
		if len(few) != n || len(more) != n+1 || !more.IsSuperset(few) {
			t.Errorf("%v and %v of %v", few, more, addresses)
		}
		if without := chosen(addresses[1:], n); few.SymmetricDifference(without).Len() > 2 {
			t.Errorf("%v, and without %s %v", few, addresses[0], without)
		}
	}
}
