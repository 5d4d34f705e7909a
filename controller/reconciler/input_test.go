// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"net/netip"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/export/exporttest"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// listed is a member of which a list arrives while it is read.
type listed struct {
	synced    bool
	withheld  bool
	published []*discoveryv1.EndpointSlice
	arrives   func() // when the slices are read
}

func (l *listed) Cluster() string { return "west" }
func (l *listed) Synced() bool    { return l.synced }

func (l *listed) Withheld(types.NamespacedName) bool { return l.withheld }

func (l *listed) Slices(types.NamespacedName) []*discoveryv1.EndpointSlice {
	l.arrives()
	return l.published
}

// TestServicesAreOwned: no member leads clients to a Service of this cluster.
func TestServicesAreOwned(t *testing.T) {
	r := newTestReconciler()
	r.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}
	if owns := r.Source().Owns; !owns("10.96.0.10", false) || owns("10.97.0.10", false) {
		t.Error("other addresses are owned than those of Services")
	}
}

// TestViewIsNotOlderThanItsVerdict: a list that is not believed removes
// nothing, even where it arrives while the service is looked at.
func TestViewIsNotOlderThanItsVerdict(t *testing.T) {
	web := exporttest.Web
	copies := merge.Merge(merge.Observed{Cluster: "west", Service: web},
		[]merge.Contribution{{View: exporttest.View("west", 1, "80/TCP", "10.65.0.10")}}).EndpointSlices
	for name, test := range map[string]struct {
		synced, keepBefore, keepAfter bool
		withheldBefore, withheldAfter bool
		published                     []*discoveryv1.EndpointSlice
		want                          bool
	}{
		"empty and believed":           {synced: true},
		"empty and held":               {synced: true, keepBefore: true, keepAfter: true, want: true},
		"held as it arrives":           {synced: true, keepAfter: true, want: true},
		"held until the next arrives":  {synced: true, keepBefore: true, want: true},
		"not seen":                     {want: true},
		"withheld":                     {synced: true, withheldBefore: true, withheldAfter: true, want: true},
		"withheld as it arrives":       {synced: true, withheldAfter: true, want: true},
		"no longer withheld":           {synced: true, withheldBefore: true, want: true},
		"published":                    {synced: true, published: copies, want: true},
		"published and held meanwhile": {synced: true, keepAfter: true, published: copies, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			keep := test.keepBefore
			m := &listed{synced: test.synced, withheld: test.withheldBefore, published: test.published}
			m.arrives = func() { keep, m.withheld = test.keepAfter, test.withheldAfter }
			published, verdict := read(m, web, func(cluster string) liveness.Verdict {
				return liveness.Verdict{Cluster: cluster, Keep: keep}
			})
			view, problems, _ := verdict.View(export.Source{Cluster: "west"}, web, published, copies)
			if verdict.Cluster != "west" {
				t.Errorf("the verdict is %+v", verdict)
			}
			if (view != nil) != test.want {
				t.Errorf("the view is %+v, want one: %t", view, test.want)
			}
			if len(problems) > 0 {
				t.Error(problems)
			}
		})
	}
}
