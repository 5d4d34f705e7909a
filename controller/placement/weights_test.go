// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
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

func TestUsed(t *testing.T) {
	for _, test := range []struct{ weights, ready, used string }{
		{"west=10", "east=9 west=3", "east=9 west=1"},
		{"west=1", "east=99 west=3", "east=99 west=1"},
		{"west=1", "east=9 west=3", "east=9 west=1"},   // 10 %: at least one
		{"west=50", "east=9 west=3", "east=9 west=3"},  // no more than there are
		{"west=50", "east=4 west=10", "east=4 west=4"}, // as many
		{"west=75", "east=4 west=20", "east=4 west=12"},
		{"west=100", "east=9 west=3", "east=0 west=3"},
		{"west=0", "east=9 west=3", "east=9 west=0"},
		{"west=10, north=20", "east=7 west=5 north=5", "east=7 north=2 west=1"},
		{"west=70, east=30", "east=10 west=7 north=5", "east=3 north=0 west=7"},
		{"west=100, east=0", "east=10 west=7", "east=0 west=7"},
		{"west=10", "east=0 west=3", "east=0 west=3"},                           // nothing else is ready
		{"west=10, north=30", "east=0 west=3 north=8", "east=0 north=8 west=3"}, // their ratio, 1 to 3
		{"west=0", "east=0 west=3", "east=0 west=0"},
		{"west=10", "east=5 west=0", "east=5 west=0"},
		{"west=10, north=20", "east=9 west=5 north=0", "east=9 north=0 west=1"}, // 10 % without north
		{"west=50, north=50", "east=9 west=5 north=0", "east=0 north=0 west=5"}, // still nothing for east
		{"gone=100", "east=9 west=5", "east=0 west=0"},
	} {
		weights, err := parseWeights(test.weights)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := weights.Used(counts(t, test.ready)), counts(t, test.used); !maps.Equal(got, want) {
			t.Errorf("%s of %s: got %v, want %v", test.weights, test.ready, got, want)
		}
	}
}

func TestEach(t *testing.T) {
	for _, test := range []struct{ weights, ready, each string }{
		{"west=10", "east=9 west=3", "map[east:5120 west:1728]"},
		{"west=10", "east=10 west=3", "map[east:4608 west:1728]"},
		{"west=50", "east=3 west=3", "map[east:8704 west:8704]"},
		{"west=50, east=50", "east=16 west=16", "map[east:1600 west:1600]"},
		{"west=50, east=50", "east=17 west=16", "map[east:1536 west:1600]"},
		{"west=50, east=50", "east=26 west=16", "map[east:992 west:1600]"},
		{"west=0", "east=3 west=3", "map[east:17408 west:0]"},
		{"west=100", "east=3 west=3", "map[east:0 west:17408]"},
		{"west=100", "east=3 west=1", "map[east:0 west:51200]"},
		{"west=10, north=20", "east=7 west=1 north=0", "map[east:6656 north:0 west:5120]"},
		{"west=70, east=30", "east=1 west=7 north=5", "map[east:15360 north:0 west:5120]"},
		{"west=10", "east=0 west=3", "map[east:0 west:1728]"}, // nothing else is ready
		{"west=50", "east=1", "map[east:51200]"},
		{"gone=100", "east=9", "map[east:0]"},
		{"west=1", "east=99 west=32", "map[east:512 west:16]"},
		{"west=1", "east=99 west=100", "map[east:512 west:5]"},
		{"west=1", "east=1 west=100000", "map[east:51200 west:1]"},
	} {
		weights, err := parseWeights(test.weights)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(weights.each(counts(t, test.ready))); got != test.each {
			t.Errorf("%s of %s: got %s, want %s", test.weights, test.ready, got, test.each)
		}
	}
}

// TestEachShares: clients that choose by the weights give clusters their shares, exact to a sixteenth if no cluster has
// more than 32 endpoints for each percent, and otherwise as whole numbers allow.
func TestEachShares(t *testing.T) {
	few := 0
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
		each := weights.each(ready)
		sum := weights["west"] + weights["north"]
		want := map[string]float64{"west": float64(weights["west"]), "north": float64(weights["north"])}
		if sum < 100 {
			want["east"] = float64(100-sum) * float64(ready["east"]) / float64(ready["east"]+ready["south"])
			want["south"] = float64(100-sum) * float64(ready["south"]) / float64(ready["east"]+ready["south"])
		}
		got, many, percents := 0, 0, 0.0
		for cluster, weight := range each {
			got += weight * ready[cluster]
			percents += want[cluster]
			if (weight == 0) != (ready[cluster] == 0 || want[cluster] == 0) || weight < 0 || weight > math.MaxUint16 {
				t.Fatalf("%v of %v: %v", weights, ready, each)
			}
			if weight > 0 && want[cluster]*32 < float64(ready[cluster]) {
				many++
			}
		}
		if many == 0 {
			few++
		}
		for cluster := range want {
			if ready[cluster] == 0 {
				continue
			}
			share, asked := float64(each[cluster]*ready[cluster])/float64(got), want[cluster]/percents
			if off := share/asked - 1; many == 0 && math.Abs(off) > 1.0/16 {
				t.Errorf("%v of %v: %s has %.4f instead of %.4f: weights %v", weights, ready, cluster, share, asked, each)
			}
			// Without the other clusters: the exact weight, rounded to five bits or to a whole number.
			exact := 512 * want[cluster] / float64(ready[cluster])
			if off := math.Abs(float64(each[cluster]) - exact); off > max(exact/32, 0.5) && (exact > 1 || each[cluster] != 1) {
				t.Errorf("%v of %v: %s has weight %d, exactly %.2f", weights, ready, cluster, each[cluster], exact)
			}
		}
		if sum < 100 && each["south"] > 0 && each["south"] != each["east"] {
			t.Errorf("%v of %v: %v", weights, ready, each)
		}
	}
	if few < 1000 {
		t.Errorf("only %d cluster sets have few endpoints", few)
	}
}

// TestEachIsOfOneCluster: the weight of a cluster does not depend on how many endpoints the others have, except that
// clusters without a weight share one, so slices can be written one by one without a wrong share meanwhile.
func TestEachIsOfOneCluster(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 2))
		weights := Weights{}
		for _, cluster := range []string{"west", "north"} {
			weights[cluster] = r.IntN(60 + r.IntN(42))
		}
		few := func() int { return 1 + r.IntN(1<<r.IntN(13)) }
		ready := map[string]int{"east": few(), "south": few(), "west": few(), "north": few()}
		before := weights.each(ready)

		ready["west"] = few()
		for cluster, weight := range weights.each(ready) {
			if cluster != "west" && weight != before[cluster] {
				t.Errorf("%v of %v: %s has %d, and before west changed %d", weights, ready, cluster, weight, before[cluster])
			}
		}
		ready["east"], ready["south"] = ready["east"]-1+few(), r.IntN(5)
		after := weights.each(ready)
		ready["west"] = 0
		if without := weights.each(ready)["north"]; without != after["north"] || after["north"] != before["north"] {
			t.Errorf("%v of %v: north has %d, %d before, and %d without west", weights, ready, after["north"], before["north"],
				without)
		}
	}
}

// counts reads a text such as "east=9 west=3".
func counts(t *testing.T, text string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, field := range strings.Fields(text) {
		var n int
		cluster, count, _ := strings.Cut(field, "=")
		if _, err := fmt.Sscan(count, &n); err != nil {
			t.Fatal(err)
		}
		all[cluster] = n
	}
	return all
}

// TestPlaces: more or fewer endpoints, and one that comes or goes, move as few as possible, in any order.
func TestPlaces(t *testing.T) {
	chosen := func(r *rand.Rand, addresses []string, n int) map[string]bool {
		var positions []position
		for _, i := range r.Perm(len(addresses)) {
			positions = append(positions, positionOf("demo/web", addresses[i]), positionOf("demo/web", addresses[i]))
		}
		last, result := last(positions, n), map[string]bool{}
		for _, address := range addresses {
			if positionOf("demo/web", address).compare(last) <= 0 {
				result[address] = true
			}
		}
		return result
	}
	moved := func(a, b map[string]bool) (n int) {
		for address := range a {
			if !b[address] {
				n++
			}
		}
		return n
	}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		var addresses []string
		for i := range 2 + r.IntN(30) {
			addresses = append(addresses, fmt.Sprintf("10.0.%d.%d", seed%7, i))
		}
		n := 1 + r.IntN(len(addresses)-1)
		few, more := chosen(r, addresses, n), chosen(r, addresses, n+1)
		if len(few) != n || len(more) != n+1 || moved(few, more) != 0 {
			t.Errorf("%v and %v of %v", few, more, addresses)
		}
		if without := chosen(r, addresses[1:], n); moved(few, without) > 1 || moved(without, few) > 1 {
			t.Errorf("%v, and without %s %v", few, addresses[0], without)
		}
	}
}
