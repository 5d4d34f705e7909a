// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// withImports returns a reconciler of which only the API runs. Each import is "namespace/name", or
// "namespace/name=IP" if it is marked for adoption.
func withImports(t *testing.T, imports ...string) *Reconciler {
	t.Helper()
	var texts []string
	for _, text := range imports {
		key, ip, adopted := strings.Cut(text, "=")
		namespace, name, _ := strings.Cut(key, "/")
		texts = append(texts, fmt.Sprintf(`{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport",`+
			`"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":"1","annotations":{%q:"%t"}},`+
			`"spec":{"type":"ClusterSetIP","ips":[%q],"ports":[{"port":80}]}}`,
			namespace, name, key, export.AnnotationAdopt, adopted, ip))
	}
	return withAPI(t, definitionsWith(t, strings.Join(texts, ",")))
}

// withExports is the same with ServiceExports. Each is "namespace/name", or "namespace/name=clusters".
func withExports(t *testing.T, exports ...string) *Reconciler {
	t.Helper()
	var texts []string
	for _, text := range exports {
		key, clusters, _ := strings.Cut(text, "=")
		namespace, name, _ := strings.Cut(key, "/")
		texts = append(texts, fmt.Sprintf(`{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport",`+
			`"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":"1","annotations":{%q:%q}}}`,
			namespace, name, key, export.AnnotationClusters, clusters))
	}
	return withAPI(t, definitionsWith(t, "", texts...))
}

// withAPI returns a reconciler of which only the API runs.
func withAPI(t *testing.T, answers http.HandlerFunc) *Reconciler {
	t.Helper()
	server := httptest.NewServer(answers)
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
func queued(r *Reconciler) (services []string) {
	for r.queue.Len() > 0 {
		service, _ := r.queue.Get()
		services = append(services, service.String())
		r.queue.Done(service)
	}
	slices.Sort(services)
	return services
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

// TestWithoutTheAPI: nothing is deleted, and as what the cluster publishes may be withdrawn, its heartbeat stops.
func TestWithoutTheAPI(t *testing.T) {
	definitions := definitionsWith(t, "")
	r := withAPI(t, func(w http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		query.Del("fieldSelector") // no definition has this name
		request.URL.RawQuery = query.Encode()
		definitions(w, request)
	})
	client := fake.NewClientset()
	r.Applier.Core = client
	if err := r.Local.Namespaces.Indexer().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}); err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []string{"east", "west"} {
		addSlice(t, r, cluster, "demo", "web")
	}
	outcome, err := r.reconcile(t.Context(), types.NamespacedName{Namespace: "demo", Name: "web"})
	if err != nil || outcome != (apply.Outcome{}) || len(client.Actions()) > 0 {
		t.Errorf("got %+v, %v, and the requests %v", outcome, err, client.Actions())
	}
	if late := r.Late(time.Hour); late != "ServiceExports" {
		t.Errorf("without the API, late is %q", late)
	}
	if late := withExports(t).Late(0); late != "" {
		t.Errorf("with the API, late is %q", late)
	}
}

// TestALeaderBeginsWithExports: the heartbeat waits for what the cluster exports.
func TestALeaderBeginsWithExports(t *testing.T) {
	r := withImports(t, "demo/web")
	for i := range 100 {
		addSlice(t, r, "west", "demo", fmt.Sprint("theirs-", i))
	}
	for i := range 3 {
		addSlice(t, r, "east", "demo", fmt.Sprint("ours-", i))
	}
	r.Attach()
	defer r.ShutDown()
	for i := range 104 {
		service, _ := r.queue.Get()
		if ours := strings.HasPrefix(service.Name, "ours-"); ours != (i < 3) {
			t.Errorf("in place %d is %s", i, service)
		}
		r.queue.Done(service)
	}
	if left := queued(r); len(left) > 0 {
		t.Errorf("enqueued are also %v", left)
	}
}

// TestPropertiesChange: a change of the properties of the cluster concerns its services.
func TestPropertiesChange(t *testing.T) {
	r := withImports(t)
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "about.k8s.io", Version: "v1beta1", Resource: "clusterproperties"}: "ClusterPropertyList",
	})
	client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &unstructured.UnstructuredList{Items: []unstructured.Unstructured{{Object: map[string]any{
			"metadata": map[string]any{"name": scope.ClusterSetProperty}, "spec": map[string]any{"value": "eu"},
		}}}}, nil
	})
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	r.Properties = local.NewProperties(client, now, "")
	r.Tracker = memberstate.NewTracker(liveness.Limits{}, now, r.Local, &memberstate.Reporter{})
	r.Attach()
	queued(r)
	addSlice(t, r, "west", "demo", "web")
	if err := r.Properties.Begin(t.Context(), fake.NewClientset(), "", "", ""); err != nil {
		t.Fatal(err)
	}
	if got := queued(r); !slices.Equal(got, []string{"demo/web"}) {
		t.Errorf("enqueued are %v", got)
	}
}

// TestANamespaceConcernsItsServices: a namespace that comes is that of services which are known already.
func TestANamespaceConcernsItsServices(t *testing.T) {
	r := withImports(t, "demo/web", "other/web", "other/db")
	addSlice(t, r, "east", "demo", "cache")
	derived := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "demo", Name: "derived-x",
		Labels: map[string]string{export.LabelService: "queue", export.LabelManagedBy: export.Manager},
	}}
	if err := r.Local.Services.Indexer().Add(derived); err != nil {
		t.Fatal(err)
	}
	handler := r.namespaceHandler()
	demo := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	handler.OnAdd(demo, false)
	if got := queued(r); !slices.Equal(got, []string{"demo/cache", "demo/queue", "demo/web"}) {
		t.Errorf("enqueued are %v", got)
	}
}

// TestADeletedServiceConcernsTheImportsWithItsIP: those marked for adoption, in its namespace.
func TestADeletedServiceConcernsTheImportsWithItsIP(t *testing.T) {
	r := withImports(t, "demo/web=192.0.2.1", "demo/db=192.0.2.2", "demo/plain", "other/web=192.0.2.1")
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "some"},
		Spec:       corev1.ServiceSpec{ClusterIPs: []string{"192.0.2.1", "2001:db8::1"}},
	}
	for gone, want := range map[bool][]string{false: nil, true: {"demo/web"}} {
		r.serviceChanged(change{service, gone})
		if got := queued(r); !slices.Equal(got, want) {
			t.Errorf("gone %t: enqueued are %v", gone, got)
		}
	}
}

// TestATakenNameConcernsItsExport: the name of a Service with node ports is free again.
func TestATakenNameConcernsItsExport(t *testing.T) {
	r := withExports(t, "demo/web", "demo/db", "other/web")
	r.serviceChanged(change{gone: true, Object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "demo", Name: export.NodePortServiceName(types.NamespacedName{Namespace: "demo", Name: "web"}),
	}}})
	if got := queued(r); !slices.Equal(got, []string{"demo/web"}) {
		t.Errorf("enqueued are %v", got)
	}
}

// TestNamesThatAreResolved: those of load balancers by which something is exposed, also the canaries, and "" for Gateways.
func TestNamesThatAreResolved(t *testing.T) {
	const exported = `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":` +
		`{"namespace":"demo","name":%q,"resourceVersion":"1","creationTimestamp":"2026-01-01T00:00:00Z"}}`
	r := withAPI(t, definitionsWith(t, "", fmt.Sprintf(exported, "web"), fmt.Sprintf(exported, "db")))
	r.Canary = types.NamespacedName{Namespace: "clusterset-dns", Name: "canary"}
	demo := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	if err := r.Local.Namespaces.Indexer().Add(demo); err != nil {
		t.Fatal(err)
	}
	for _, key := range []types.NamespacedName{{Namespace: "demo", Name: "web"}, {Namespace: "demo", Name: "db"}, r.Canary, {Namespace: "demo", Name: "other"}} {
		if err := r.Local.Services.Indexer().Add(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, CreationTimestamp: metav1.Now()},
			Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
				Ports: []corev1.ServicePort{{Port: 80}},
			},
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{
				{IP: "203.0.113.7"}, {Hostname: key.Namespace + ".example.org"},
			}}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	access, _ := r.API.Access()
	for _, row := range []struct {
		way  export.Exposure
		want string
	}{
		{"LoadBalancer", `["clusterset-dns.example.org" "demo.example.org" "demo.example.org"]`}, {"Gateway", `["" "" ""]`}, {"", "[]"},
	} {
		r.Expose = row.way
		for _, name := range []string{"web", "db"} {
			r.Gather(t.Context(), access, types.NamespacedName{Namespace: "demo", Name: name})
		}
		r.Exposed("canary")
		if names := slices.Sorted(slices.Values(r.names())); fmt.Sprintf("%q", names) != row.want {
			t.Errorf("exposed by %s: got %q", row.way, names)
		}
	}
}

// TestExposedCanaries: they are probed at the listeners of Gateways with a TCPRoute to their Service.
func TestExposedCanaries(t *testing.T) {
	kinds := map[schema.GroupVersionResource]string{}
	objects := map[schema.GroupVersionResource]*unstructured.Unstructured{}
	for resource, object := range map[string]string{
		"gateways": `kind: Gateway
metadata: {namespace: edge, name: shared}
spec: {listeners: [{name: canary, protocol: TCP, port: 9081}, {name: tls, protocol: TLS, port: 9443}]}
status: {addresses: [{type: IPAddress, value: 203.0.113.7}, {type: IPAddress, value: 203.0.113.8}]}`,
		"tcproutes": `kind: TCPRoute
metadata: {namespace: clusterset-dns, name: canary}
spec: {rules: [{backendRefs: [{name: canary, port: 8081}]}]}
status: {parents: [{parentRef: {name: shared, namespace: edge}, conditions: [{type: Accepted, status: "True"}]}]}`,
		"tlsroutes": "kind: TLSRoute\nmetadata: {name: none}", "udproutes": "kind: UDPRoute\nmetadata: {name: none}",
	} {
		read := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("apiVersion: gateway.networking.k8s.io/v1\n"+object), read); err != nil {
			t.Fatal(err)
		}
		at := schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: resource}
		kinds[at], objects[at] = read.GetKind()+"List", read
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	for at, object := range objects {
		if err := client.Tracker().Create(at, object, object.GetNamespace()); err != nil {
			t.Fatal(err)
		}
	}
	r := newTestReconciler()
	r.Expose, r.Canary = export.ExposeGateway, types.NamespacedName{Namespace: "clusterset-dns", Name: "canary"}
	r.Frontends = &local.Frontends{Client: client, Clock: clock.RealClock{}}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusterset-dns", Name: "canary", CreationTimestamp: metav1.Now()},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: canary.Port, Port: 8081}},
		},
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "clusterset-dns", Name: "canary-1", Labels: map[string]string{export.LabelKubernetesService: "canary"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.7"}}},
	}
	if err := errors.Join(r.Local.Services.Indexer().Add(service), r.Local.EndpointSlices.Indexer().Add(export.Pack(slice))); err != nil {
		t.Fatal(err)
	}
	if got := canary.Encode(canary.Of(r.Exposed(canary.Port))); got != "" {
		t.Errorf("before Gateways are known: %s", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	r.Frontends.Run(ctx, r.names, stop)
	if got := canary.Encode(canary.Of(r.Exposed(canary.Port))); got != "203.0.113.7:9081,203.0.113.8:9081" {
		t.Errorf("got %s", got)
	}
}

// TestANodeConcerns: a node that becomes ready or not concerns only what is exposed by its port, and new ranges concern all.
func TestANodeConcerns(t *testing.T) {
	r := withExports(t, "demo/web")
	addSlice(t, r, "west", "demo", "imported")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	down := node.DeepCopy()
	down.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	ranged := node.DeepCopy()
	ranged.Spec.PodCIDRs = []string{"10.1.0.0/24"}
	for _, row := range []struct {
		expose export.Exposure
		is     *corev1.Node
		want   string
	}{
		{export.ExposeNone, down, "[]"},
		{export.ExposeLoadBalancer, down, "[]"},
		{export.ExposeNodePort, down, "[demo/web]"},
		{export.ExposeNone, ranged, "[demo/imported demo/web]"},
	} {
		r.Expose = row.expose
		r.nodeHandler().OnUpdate(node, row.is)
		if got := fmt.Sprint(queued(r)); got != row.want {
			t.Errorf("exposed by %s: enqueued are %s, want %s", row.expose, got, row.want)
		}
	}
}
