// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/fleet"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// measured returns the figures of a run. It checks that they are numbers, but not that they reach their goals.
func measured(t *testing.T, o options, plans []plan) (all []*figure) {
	t.Helper()
	tables, err := measure(t.Context(), o, plans, t.Output())
	controlplanetest.Must(t, err)
	for _, table := range tables {
		if len(table.figures) == 0 {
			t.Errorf("%s: no figures", table.title)
		}
		for _, f := range table.figures {
			if text := f.measured + f.floor + f.ratio; !strings.ContainsAny(f.measured, "0123456789") || strings.Contains(text, "NaN") ||
				strings.Contains(text, "Inf") || strings.Contains(text, "%!") {
				t.Errorf("not a figure: %+v", f)
			}
			if f.value > 0 && (f.floor == "" || f.ratio == "") {
				t.Errorf("%s has no floor", f.what)
			}
		}
		t.Log(table.markdown())
		all = append(all, table.figures...)
	}
	return all
}

// TestJoinedClustersAreMeasured runs the measurements of two joined clusters for a short time.
func TestJoinedClustersAreMeasured(t *testing.T) {
	o := options{
		shape:  fleet.Shape{Members: 2, Services: 40, Endpoints: 400, Spread: 2},
		joined: joined{rounds: 1, load: time.Second, exports: 6, followed: 12},
	}
	measured(t, o, joinedPlans)
}

// TestASmallSetIsMeasured runs all measurements of a large set with few clusters: all services are imported, and all
// followed changes are answered.
func TestASmallSetIsMeasured(t *testing.T) {
	o := options{
		shape: fleet.Shape{Members: 10, Services: 20, Endpoints: 1000, Spread: 5},
		scale: scale{rate: 50, changes: 3 * time.Second, rest: time.Second},
	}
	all := measured(t, o, scalePlans(o))
	if len(all) != 6 || !strings.Contains(all[4].measured, " 0 unanswered") {
		t.Errorf("the figures are %+v, want six, and of the changes none unanswered", all)
	}
}

// TestFigures: a quantile is a sample (nearest rank), and a figure is compared with its floor.
func TestFigures(t *testing.T) {
	samples := []time.Duration{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0: 1, 0.2: 1, 0.5: 3, 0.8: 4, 0.99: 5, 1: 5} {
		if got := quantile(samples, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	for _, tc := range []struct {
		value  float64
		limit  *limit
		missed bool
	}{
		{1.3e6, ratio(1.3), false},
		{1.4e6, ratio(1.3), true},
		{6e6, later(5 * time.Millisecond), false},
		{7e6, later(5 * time.Millisecond), true},
		{7e6, nil, false},
	} {
		f := figure{value: tc.value}
		if f.compare(1e6, tc.limit); f.missed != tc.missed || f.floor != "1ms" {
			t.Errorf("%v: %+v, want missed %t", tc.value, f, tc.missed)
		}
	}
}
