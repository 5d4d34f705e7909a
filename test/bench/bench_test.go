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
