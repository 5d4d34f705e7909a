// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
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

// newTestReconciler returns a reconciler of cluster east, of which nothing runs.
func newTestReconciler() *Reconciler {
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
		API: api, Gate: gate,
	})
	r.LimitIPs(0)
	return r
}

// withAPI is the same, and its API runs with these ServiceImports and ServiceExports.
func withAPI(t *testing.T, imports []v1beta1.ServiceImport, exports []v1beta1.ServiceExport) *Reconciler {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		list := map[string]any{"metadata": map[string]any{"resourceVersion": "1"}}
		definition, _ := strings.CutPrefix(request.URL.Query().Get("fieldSelector"), "metadata.name=")
		switch {
		case request.URL.Query().Get("sendInitialEvents") == "true":
			w.WriteHeader(http.StatusUnprocessableEntity)
			list = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}
		case request.URL.Query().Get("watch") == "true":
			_ = http.NewResponseController(w).Flush() // the client may hang up
			<-request.Context().Done()
			return
		case definition != "":
			list["apiVersion"], list["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinitionList"
			list["items"] = []any{map[string]any{
				"metadata": map[string]any{"name": definition, "resourceVersion": "1"},
				"spec":     map[string]any{"versions": []any{map[string]any{"name": "v1beta1", "served": true}}},
				"status":   map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}},
			}}
		case strings.HasSuffix(request.URL.Path, "/serviceimports"):
			list["apiVersion"], list["kind"], list["items"] = v1beta1.GroupVersion.String(), "ServiceImportList", imports
		default:
			list["apiVersion"], list["kind"], list["items"] = v1beta1.GroupVersion.String(), "ServiceExportList", exports
		}
		_ = json.NewEncoder(w).Encode(list)
	}))
	r := newTestReconciler()
	var err error
	if r.API, err = local.NewAPI(&rest.Config{Host: server.URL}, http.DefaultClient, r.Gate); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = r.API.Run(ctx) })
	r.API.WaitForSync(ctx)
	t.Cleanup(func() {
		stop()
		running.Wait()
		server.Close()
	})
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

// addSlice adds a slice that the controller made of what a cluster exports to the cache.
func addSlice(t *testing.T, r *Reconciler, cluster, namespace, service string) {
	t.Helper()
	if err := r.Local.EndpointSlices.Indexer().Add(export.Pack(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: service, Labels: map[string]string{
			export.LabelService: service, export.LabelSourceCluster: cluster, export.LabelSliceManagedBy: export.Manager,
		},
	}})); err != nil {
		t.Fatal(err)
	}
}
