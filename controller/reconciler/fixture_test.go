// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	discoveryfake "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// newTestReconciler returns a reconciler of cluster east that is not running.
func newTestReconciler() *Reconciler {
	gate := &informer.FreshnessGate{}
	own := local.New(fake.NewClientset(), gate, "clusterset-dns", "")
	tracker := memberstate.NewTracker(liveness.Limits{StaleAfter: time.Hour}, clock.RealClock{}, nil, &memberstate.Reporter{})
	return New(Config{
		Cluster: "east", Namespace: "clusterset-dns", ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/27")},
		Applier:    &apply.Applier{Clock: clock.RealClock{}},
		Properties: local.NewProperties(nil, clock.RealClock{}, ""), Frontends: &local.Frontends{},
		Pods: local.NewPods(nil), Clock: clock.RealClock{},
		Local: own, Tracker: tracker,
		Members: member.New(member.Config{
			Cluster: "east", Local: own, Tracker: tracker, Report: func(member.Problem) {}, Clock: clock.RealClock{},
		}),
		API: local.NewAPI(nil, nil, fake.NewClientset().Discovery(), dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), gate), Gate: gate,
		Observe: func(time.Duration, error) {},
	})
}

// withAPI is newTestReconciler with an open API that has these ServiceImports and ServiceExports.
func withAPI(t *testing.T, objects ...runtime.Object) *Reconciler {
	t.Helper()
	clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, false) // no watch of a fake client begins with a list
	scheme := runtime.NewScheme()
	utilruntime.Must(v1beta1.Install(scheme))
	served := &metav1.APIResourceList{GroupVersion: v1beta1.SchemeGroupVersion.String(), APIResources: []metav1.APIResource{
		{Name: v1beta1.ServiceExportPluralName}, {Name: v1beta1.ServiceImportPluralName},
	}}
	client := fake.NewClientset().Discovery()
	client.(*discoveryfake.FakeDiscovery).Resources = []*metav1.APIResourceList{served}
	r := newTestReconciler()
	r.API = local.NewAPI(&rest.Config{}, http.DefaultClient, client, dynamicfake.NewSimpleDynamicClient(scheme, objects...), r.Gate)
	r.Applier.API = r.API
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	if err := r.API.Open(t.Context(), &running, nil); err != nil || !cache.WaitForCacheSync(t.Context().Done(), r.API.HasSynced) {
		t.Fatal(err)
	}
	return r
}

// queued empties the queue.
func queued(r *Reconciler) string {
	var services []string
	for r.queue.Len() > 0 {
		service, _ := r.queue.Get()
		services = append(services, service.String())
		r.queue.Done(service)
	}
	slices.Sort(services)
	return strings.Join(services, " ")
}

// addSlice adds a slice to the cache that the controller made from an export of a cluster.
func addSlice(t *testing.T, r *Reconciler, cluster, namespace, service string) {
	t.Helper()
	must(t, r.Local.EndpointSlices.Indexer().Add(export.Pack(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: service, UID: types.UID(service), ResourceVersion: "1", Labels: map[string]string{
			export.LabelService: service, export.LabelSourceCluster: cluster, export.LabelSliceManagedBy: export.Manager,
		},
	}})))
}

// must ends the test if there is an error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
