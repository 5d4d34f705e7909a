// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/export/exporttest"
	"github.com/clusterset-dns/clusterset-dns/controller/heartbeat"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/probe"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// withServices returns a reconciler whose cluster has imports, some marked for adoption, exports, and objects that the
// controller made from these exports and the exports of west.
func withServices(t *testing.T) *Reconciler {
	t.Helper()
	named := func(key string, annotations map[string]string) metav1.ObjectMeta {
		namespace, name, _ := strings.Cut(key, "/")
		return metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(key), ResourceVersion: "1", CreationTimestamp: metav1.Now(), Annotations: annotations,
		}
	}
	adopt := map[string]string{export.AnnotationAdopt: "true"}
	imported := func(key, ip string, annotations map[string]string) runtime.Object {
		return &v1beta1.ServiceImport{ObjectMeta: named(key, annotations), Spec: v1beta1.ServiceImportSpec{IPs: []string{ip}}}
	}
	r := withAPI(t, imported("demo/taken", "192.0.2.1", adopt), imported("demo/plain", "192.0.2.1", nil),
		imported("other/taken", "192.0.2.1", adopt), imported("demo/free", "192.0.2.2", adopt),
		&v1beta1.ServiceExport{ObjectMeta: named("demo/web", nil)}, &v1beta1.ServiceExport{ObjectMeta: named("other/web", nil)},
		&v1beta1.ServiceExport{ObjectMeta: named("demo/chosen", map[string]string{export.AnnotationClusters: "region in (eu)"})})
	addSlice(t, r, "east", "demo", "cache")
	addSlice(t, r, "west", "demo", "imported")
	must(t, r.Local.Services.Indexer().Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: "demo", Name: "derived-x",
		Labels: map[string]string{export.LabelService: "queue", export.LabelManagedBy: export.Manager},
	}}))
	return r
}

// TestChanges: the services that each change affects.
func TestChanges(t *testing.T) {
	const all = "demo/cache demo/chosen demo/free demo/imported demo/plain demo/queue demo/taken demo/web"
	r := withServices(t)
	deleted := func(name string) func() {
		return func() {
			r.onService(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name}}, true)
		}
	}
	node := func(expose export.Exposure, change func(*local.Node)) func() {
		return func() {
			before, after := &local.Node{Node: export.Node{Ready: true}}, &local.Node{Node: export.Node{Ready: true}}
			change(after)
			r.Expose = expose
			r.onNode(before, after)
		}
	}
	down := func(node *local.Node) { node.Ready = false }
	ranked := func(name, rank string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, ResourceVersion: rank, Annotations: map[string]string{member.RankAnnotation: rank},
		}}
	}
	for name, test := range map[string]struct {
		act  func()
		want string
	}{
		"a member has other properties":                 {func() { r.MemberChanged("west") }, "demo/chosen demo/imported"},
		"a namespace comes":                             {func() { r.onNamespace(nil, ranked("demo", "x")) }, all},
		"a namespace goes":                              {func() { r.onNamespace(ranked("demo", "x"), nil) }, all},
		"a namespace changes":                           {func() { r.onNamespace(ranked("demo", "1"), ranked("demo", "2")) }, all},
		"the cluster has a rank":                        {func() { r.onNamespace(ranked("clusterset-dns", "1"), ranked("clusterset-dns", "2")) }, "demo/cache"},
		"the name of a Service with node ports is free": {deleted(export.NodePortServiceName(types.NamespacedName{Namespace: "demo", Name: "web"})), "demo/free demo/taken demo/web"},
		"a derived name is free":                        {deleted(export.DerivedServiceName(types.NamespacedName{Namespace: "demo", Name: "plain"})), "demo/free demo/plain demo/taken"},
		"a Service that may have an adopted IP goes":    {deleted("some"), "demo/free demo/taken"},
		"a slice of it, whose labels are those of the Service": {func() {
			r.onSlice(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Labels: map[string]string{
				export.LabelKubernetesService: export.NodePortServiceName(types.NamespacedName{Namespace: "demo", Name: "web"}),
				export.LabelExposed:           "web", export.LabelSliceManagedBy: kubernetesSlices,
			}}}, false)
		}, ""},
		"a node is down":                       {node(export.ExposeNone, down), ""},
		"a node is down, exposed by others":    {node(export.ExposeLoadBalancer, down), ""},
		"a node is down, exposed by its ports": {node(export.ExposeNodePort, down), "demo/chosen demo/web other/web"},
	} {
		test.act()
		if got := queued(r); got != test.want {
			t.Errorf("%s: enqueued are %q, want %q", name, got, test.want)
		}
	}
	for rank, namespace := range map[int]*corev1.Namespace{-3: ranked("some", "-3"), member.LastRank: ranked("some", "x"), 0: nil} {
		if got := Standing(namespace).Rank; got != rank {
			t.Errorf("rank %d, want %d", got, rank)
		}
	}
}

// TestNodesComeAndGo: other changes do not wait until all services are reconciled for a node, except for exports that need it.
func TestNodesComeAndGo(t *testing.T) {
	added := &local.Node{}
	for name, change := range map[string]func(r *Reconciler){
		"it comes":             func(r *Reconciler) { r.onNode(nil, added) },
		"it goes":              func(r *Reconciler) { r.onNode(added, nil) },
		"it has another zone":  func(r *Reconciler) { r.onNode(added, &local.Node{Node: export.Node{Zone: "x"}}) },
		"it has an address":    func(r *Reconciler) { r.onNode(added, &local.Node{Node: export.Node{Own: []string{"192.0.2.7"}}}) },
		"its pods get a range": func(r *Reconciler) { r.onNode(added, &local.Node{PodCIDRs: []string{"10.1.0.0/24"}}) },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := withServices(t)
			defer r.ShutDown()
			r.Expose = export.ExposeNodePort
			change(r)
			if got := queued(r); got != "demo/chosen demo/web other/web" {
				t.Errorf("%s: at once, %q are reconciled", name, got)
			}
			if pass(nodesWithin + time.Second); r.queue.Len() != 10 {
				t.Errorf("%s: %d services are reconciled", name, r.queue.Len())
			}
		})
	}
}

// TestFailingServices are reported until they are written. The heartbeat goes on: the controller may only lack a right.
func TestFailingServices(t *testing.T) {
	r, web := withServices(t), types.NamespacedName{Namespace: "demo", Name: "web"} // its API server refuses connections
	r.heartbeat = heartbeat.New(heartbeat.Config{Clock: r.Clock}, nil)
	r.Applier.Core, r.Applier.Recorder = fake.NewClientset(), &record.FakeRecorder{}
	namespaces := r.Local.Namespaces.Indexer()
	must(t, namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}))
	for i := range apply.FailuresToReport + 2 {
		r.pass(t.Context(), web)
		if failing := r.Failing(); (failing[web] != nil) != (i >= apply.FailuresToReport) || len(r.heartbeat.Unpublished()) > 0 {
			t.Errorf("after %d failures: %v", i+1, failing)
		}
	}
	must(t, namespaces.Replace(nil, ""))
	if r.pass(t.Context(), web); len(r.Failing()) > 0 {
		t.Errorf("what is gone fails: %v", r.Failing())
	}
}

// TestNamespaceIsDeleted: IPs of members in it do not come back with a new namespace of its name.
func TestNamespaceIsDeleted(t *testing.T) {
	r, web, client := withAPI(t), types.NamespacedName{Namespace: "demo", Name: "web"}, fake.NewClientset()
	r.Applier.Core = client
	r.ips.Admit(web, []string{"west"}, true)
	must(t, r.Local.Namespaces.Indexer().Replace(nil, ""))
	_, err := r.reconcile(t.Context(), web)
	if ips, _ := r.ips.Use(); err != nil || ips > 0 || len(client.Actions()) > 0 {
		t.Errorf("got %v, and west still has %d IPs", err, ips)
	}
}

// TestMembersOfAPass: they are in an order, so that no message that lists them changes without a cause. Their endpoints cannot have
// the address of a Service of this cluster.
func TestMembersOfAPass(t *testing.T) {
	r, web := withAPI(t), types.NamespacedName{Namespace: "demo", Name: "web"}
	accepting := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo", Labels: map[string]string{scope.AcceptLabel: "true"}}}
	err := r.Local.Namespaces.Indexer().Add(accepting)
	for cluster, address := range map[string]string{"e": "10.65.0.10", "d": "10.65.0.10", "c": "10.65.0.10", "b": "10.96.0.32", "a": "10.96.0.31"} {
		copied := merge.Merge(merge.Observed{Cluster: "east", Service: web, Place: r.here().Of},
			[]merge.Contribution{{View: exporttest.View(cluster, 1, "80/TCP", address)}}).EndpointSlices[0]
		err = errors.Join(err, r.Local.EndpointSlices.Indexer().Add(export.Pack(copied)), r.Local.Secrets.Indexer().Add(
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cluster, Labels: map[string]string{member.ClusterLabel: cluster}}}))
	}
	must(t, err)
	r.Members.Join(t.Context(), nil)
	order := ""
	for _, contribution := range r.Look(web).Contributions {
		order += fmt.Sprint(contribution.View.Cluster, len(contribution.View.Slices[0].Endpoints))
	}
	if order != "a0b1c1d1e1" {
		t.Errorf("the members are %s", order)
	}
}

// TestALeaderBeginsWithExports: the heartbeat waits for the exports of the cluster.
func TestALeaderBeginsWithExports(t *testing.T) {
	r := withServices(t)
	for i := range 100 {
		addSlice(t, r, "west", "demo", fmt.Sprint("theirs-", i))
	}
	r.Attach()
	defer r.ShutDown()
	var first []string
	for range 4 {
		service, _ := r.queue.Get()
		first = append(first, service.String())
		r.queue.Done(service)
	}
	slices.Sort(first)
	if got := strings.Join(first, " "); got != "demo/cache demo/chosen demo/web other/web" {
		t.Errorf("the first are %s", got)
	}
	if left := r.queue.Len(); left != 106 {
		t.Errorf("%d others", left)
	}
}

// TestExposed: for services and probe targets behind load balancers, addresses are published and names are to be
// resolved, with "" for Gateways. Probe targets are reached at the listeners of Gateways that have them as backends.
func TestExposed(t *testing.T) {
	r := withServices(t)
	r.ProbeService = types.NamespacedName{Namespace: "clusterset-dns", Name: "target"}
	r.Frontends = &local.Frontends{Clock: clock.RealClock{}, List: func(context.Context) (map[types.NamespacedName][]export.Frontend, error) {
		return map[types.NamespacedName][]export.Frontend{r.ProbeService: {{
			Addresses: []string{"203.0.113.7", "203.0.113.8"}, Targets: []export.Target{{Protocol: "TCP", Number: 80, Port: 9081}},
		}}}, nil
	}}
	web, chosen := types.NamespacedName{Namespace: "demo", Name: "web"}, types.NamespacedName{Namespace: "demo", Name: "chosen"}
	for _, key := range []types.NamespacedName{web, chosen, r.ProbeService, {Namespace: "demo", Name: "other"}} {
		must(t, r.Local.Services.Indexer().Add(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, CreationTimestamp: metav1.Now()},
			Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
				Ports: []corev1.ServicePort{{Port: 80}},
			},
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{
				{IP: "203.0.113.7"}, {Hostname: key.Namespace + ".example.org"},
			}}},
		}))
	}
	must(t, r.Local.EndpointSlices.Indexer().Add(export.Pack(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "clusterset-dns", Name: "target-1", Labels: map[string]string{export.LabelKubernetesService: "target"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.7"}}},
	})))
	must(t, r.Local.Namespaces.Indexer().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}))
	targets := func() string { return probe.Encode(probe.Of(r.Exposed(probe.Port))) }
	for _, row := range []struct {
		way            export.Exposure
		names, targets string
	}{
		{"", "[]", ""},
		{"LoadBalancer", `["clusterset-dns.example.org" "demo.example.org" "demo.example.org"]`, "203.0.113.7:80"},
		{"Gateway", `["" "" ""]`, ""}, // they are not known yet
	} {
		r.Expose = row.way
		for _, service := range []types.NamespacedName{web, chosen} {
			r.Gather(t.Context(), service)
		}
		if got, names := targets(), fmt.Sprintf("%q", slices.Sorted(slices.Values(r.names()))); names != row.names || got != row.targets {
			t.Errorf("exposed by %s: names %s, targets %s", row.way, names, got)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	r.Frontends.Run(ctx, r.names, stop)
	if got := targets(); got != "203.0.113.7:9081,203.0.113.8:9081" {
		t.Errorf("behind Gateways: %s", got)
	}
}
