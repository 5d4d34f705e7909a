// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// newTestReconciler returns a reconciler of cluster east, of which nothing runs.
func newTestReconciler(recorder record.EventRecorder) *Reconciler {
	gate := &informer.FreshnessGate{}
	api, err := local.NewAPI(&rest.Config{}, nil, gate)
	if err != nil {
		panic(err)
	}
	r := New(Config{
		Gatherer: &Gatherer{
			Cluster: "east", Namespace: "clusterset-dns", Applier: &apply.Applier{Clock: clock.RealClock{}},
			Properties: local.NewProperties(nil, nil, ""), Frontends: &local.Frontends{},
			Pods: local.NewPods(nil), Clock: clock.RealClock{},
			Local:   local.New(fake.NewClientset(), gate, "clusterset-dns"),
			Members: member.New(member.Config{}),
			Tracker: memberstate.NewTracker(liveness.Limits{}, clock.RealClock{}, nil, &memberstate.Reporter{}),
		},
		API: api, Gate: gate, Recorder: recorder,
	})
	r.LimitIPs(0)
	return r
}
