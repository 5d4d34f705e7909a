// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// eventually waits until check is nil.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	deadline := time.NewTimer(60 * time.Second)
	defer deadline.Stop()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		request, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err := check(request)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("%s: %v", what, err)
		case <-ticker.C:
		}
	}
}

// newNamespace makes a namespace, which goes with the test, and waits for its service account.
func newNamespace(t *testing.T, cluster *controlplane.Cluster) string {
	t.Helper()
	namespaces := cluster.Client().CoreV1().Namespaces()
	namespace, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := namespaces.Delete(context.Background(), namespace.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	eventually(t, "the namespace's service account", func(ctx context.Context) error {
		_, err := cluster.Client().CoreV1().ServiceAccounts(namespace.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return namespace.Name
}

func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: app, Image: app}}},
	}
}

func service(app string, clusterIP string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: corev1.ServiceSpec{
			ClusterIP: clusterIP,
			Selector:  map[string]string{"app": app},
			Ports:     []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
}

func selector(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// readyEndpoints waits until a Service has count ready endpoints, and returns them.
func readyEndpoints(t *testing.T, cluster *controlplane.Cluster, namespace, service string, family discoveryv1.AddressType, count int) (ready []discoveryv1.Endpoint) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d ready endpoints of %s", count, service), func(ctx context.Context) error {
		ready = nil
		slices, err := cluster.Client().DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
		if err != nil {
			return err
		}
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				if slice.AddressType == family && endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
					ready = append(ready, endpoint)
				}
			}
		}
		if len(ready) != count {
			return fmt.Errorf("there are %d", len(ready))
		}
		return nil
	})
	return ready
}

func TestClustersDoNotOverlap(t *testing.T) {
	t.Parallel()
	var ranges []netip.Prefix
	for _, cluster := range clusters(t) {
		options := cluster.Options()
		ranges = append(ranges, options.PodCIDRs...)
		ranges = append(ranges, options.ServiceCIDRs...)
	}
	if len(ranges) != 4 {
		t.Errorf("two single-stack clusters have the ranges %v", ranges)
	}
	for i, a := range ranges {
		for _, b := range ranges[:i] {
			if a.Overlaps(b) {
				t.Errorf("%s overlaps %s", a, b)
			}
		}
	}
}

func TestNodesHaveZones(t *testing.T) {
	t.Parallel()
	for _, cluster := range clusters(t) {
		nodes, err := cluster.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var zones []string
		for _, node := range nodes.Items {
			zones = append(zones, node.Name+"="+node.Labels[corev1.LabelTopologyZone])
		}
		got := strings.Join(zones, " ")
		if want := strings.ReplaceAll("x-0=x-a x-1=x-b", "x", cluster.Name()); got != want {
			t.Errorf("nodes and zones: %s, want %s", got, want)
		}
	}
}

func TestDeploymentGetsReadyEndpoints(t *testing.T) {
	t.Parallel()
	for _, cluster := range clusters(t) {
		namespace, replicas := newNamespace(t, cluster), int32(3)
		_, err := cluster.Client().AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector("web"), Template: template("web")},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		made, err := cluster.Client().CoreV1().Services(namespace).Create(t.Context(), service("web", ""), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if ip := netip.MustParseAddr(made.Spec.ClusterIP); !cluster.Options().ServiceCIDRs[0].Contains(ip) {
			t.Errorf("cluster IP %s is not in %s", ip, cluster.Options().ServiceCIDRs[0])
		}
		seen := map[string]bool{}
		for _, endpoint := range readyEndpoints(t, cluster, namespace, "web", discoveryv1.AddressTypeIPv4, 3) {
			address := netip.MustParseAddr(endpoint.Addresses[0])
			if !cluster.Options().PodCIDRs[0].Contains(address) || seen[address.String()] {
				t.Errorf("address %s is not in %s, or there twice", address, cluster.Options().PodCIDRs[0])
			}
			seen[address.String()] = true
			if endpoint.Zone == nil || !strings.HasPrefix(*endpoint.Zone, cluster.Name()+"-") {
				t.Errorf("endpoint %s has zone %v", address, endpoint.Zone)
			}
		}
	}
}

func TestStatefulSetGetsHostnames(t *testing.T) {
	t.Parallel()
	cluster := clusters(t)[0]
	namespace, replicas := newNamespace(t, cluster), int32(2)
	if _, err := cluster.Client().CoreV1().Services(namespace).Create(t.Context(), service("db", corev1.ClusterIPNone), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := cluster.Client().AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec:       appsv1.StatefulSetSpec{ServiceName: "db", Replicas: &replicas, Selector: selector("db"), Template: template("db")},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, endpoint := range readyEndpoints(t, cluster, namespace, "db", discoveryv1.AddressTypeIPv4, 2) {
		if endpoint.Hostname != nil {
			names[*endpoint.Hostname] = true
		}
	}
	if !names["db-0"] || !names["db-1"] {
		t.Errorf("host names of the endpoints: %v", names)
	}
}

// A test can make a pod unready, and hold one that terminates; nothing puts that right behind its back.
func TestPodConditionsAreTheTests(t *testing.T) {
	t.Parallel()
	cluster := clusters(t)[0]
	namespace := newNamespace(t, cluster)
	if _, err := cluster.Client().CoreV1().Services(namespace).Create(t.Context(), service("web", ""), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := cluster.Client().CoreV1().Pods(namespace)
	for _, name := range []string{"unready", "terminating"} {
		template := template("web")
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Name, pod.Finalizers = name, []string{"example.com/hold"}
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // before the namespace goes
		for _, name := range []string{"unready", "terminating"} {
			_, err := pods.Patch(context.Background(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			if err != nil {
				t.Error(err)
			}
		}
	})
	readyEndpoints(t, cluster, namespace, "web", discoveryv1.AddressTypeIPv4, 2)

	if err := cluster.SetPodReady(t.Context(), namespace, "unready", false); err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), "terminating", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both endpoints' conditions", func(ctx context.Context) error {
		got, err := endpointConditions(ctx, cluster, namespace, "web")
		if err != nil {
			return err
		}
		if want := "terminating: ready=false serving=true terminating=true, unready: ready=false serving=false terminating=false"; got != want {
			return errors.New(got)
		}
		return nil
	})
	if err := cluster.SetPodReady(t.Context(), namespace, "unready", true); err != nil {
		t.Fatal(err)
	}
	readyEndpoints(t, cluster, namespace, "web", discoveryv1.AddressTypeIPv4, 1)
}

func TestNamespaceDeletionCompletes(t *testing.T) {
	t.Parallel()
	cluster := clusters(t)[0]
	namespace := newNamespace(t, cluster)
	export := newExport("web")
	if _, err := cluster.Dynamic().Resource(exports("v1beta1")).Namespace(namespace).Create(t.Context(), export, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client().CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the namespace", func(ctx context.Context) error {
		found, err := cluster.Client().CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it is there: %v", found.Status))
	})
}

// An object that a ServiceImport owns goes with it, which the garbage collector can only do where it knows the CRD.
func TestGarbageCollection(t *testing.T) {
	t.Parallel()
	cluster := clusters(t)[0]
	namespace := newNamespace(t, cluster)
	owner, err := cluster.Dynamic().Resource(exports("v1beta1")).Namespace(namespace).Create(t.Context(), newExport("owner"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	maps := cluster.Client().CoreV1().ConfigMaps(namespace)
	_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
	}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Dynamic().Resource(exports("v1beta1")).Namespace(namespace).Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the owned object", func(ctx context.Context) error {
		_, err := maps.Get(ctx, "owned", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}

func TestRBAC(t *testing.T) {
	t.Parallel()
	cluster := clusters(t)[0]
	namespace := newNamespace(t, cluster)

	list := func(config *rest.Config) error {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.CoreV1().Services(namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	anonymous := rest.AnonymousClientConfig(cluster.Config())
	if err := list(anonymous); !apierrors.IsForbidden(err) {
		t.Errorf("an anonymous user lists Services: %v", err)
	}
	kubeconfig, err := cluster.ServiceAccountKubeconfig(t.Context(), namespace, "default")
	if err != nil {
		t.Fatal(err)
	}
	unprivileged, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := list(unprivileged); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:"+namespace+":default") {
		t.Errorf("an unprivileged service account lists Services: %v", err)
	}
	forged := rest.AnonymousClientConfig(cluster.Config())
	forged.BearerToken = "forged"
	if err := list(forged); !apierrors.IsUnauthorized(err) {
		t.Errorf("a forged token lists Services: %v", err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig's file: %v, %v", info, err)
	}
	admin, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	if err := list(admin); err != nil {
		t.Errorf("the written kubeconfig: %v", err)
	}
}

// A cluster of another shape: dual stack with IPv6 first, one node without a zone, other CRDs.
func TestOptions(t *testing.T) {
	t.Parallel()
	cluster := controlplanetest.Start(t, controlplane.Options{
		Name:         "shape",
		PodCIDRs:     []netip.Prefix{netip.MustParsePrefix("fd00:1::/64"), netip.MustParsePrefix("10.1.0.0/24")},
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("fd00:2::/112"), netip.MustParsePrefix("10.2.0.0/24")},
		Zones:        []string{""},
		CRDs:         controlplane.CRDsNone,
	})[0]

	node, err := cluster.Client().CoreV1().Nodes().Get(t.Context(), "shape-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if zone, ok := node.Labels[corev1.LabelTopologyZone]; ok {
		t.Errorf("node %s has the zone %q", node.Name, zone)
	}

	served := func(version string) error {
		_, err := cluster.Dynamic().Resource(exports(version)).List(t.Context(), metav1.ListOptions{})
		return err
	}
	for _, step := range []struct {
		crds              controlplane.CRDs
		v1alpha1, v1beta1 bool
	}{
		{controlplane.CRDsNone, false, false},
		{controlplane.CRDsV1alpha1, true, false},
		{controlplane.CRDsAll, true, true},
		{controlplane.CRDsNone, false, false},
	} {
		if err := cluster.InstallCRDs(t.Context(), step.crds); err != nil {
			t.Fatal(err)
		}
		for version, want := range map[string]bool{"v1alpha1": step.v1alpha1, "v1beta1": step.v1beta1} {
			if err := served(version); (err == nil) != want || (err != nil && !apierrors.IsNotFound(err)) {
				t.Errorf("CRDs %d, version %s: %v, want served %t", step.crds, version, err, want)
			}
		}
	}

	namespace := newNamespace(t, cluster)
	template := template("web")
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = "web"
	if _, err := cluster.Client().CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	dual := service("web", "")
	policy := corev1.IPFamilyPolicyRequireDualStack
	dual.Spec.IPFamilyPolicy = &policy
	made, err := cluster.Client().CoreV1().Services(namespace).Create(t.Context(), dual, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, prefix := range cluster.Options().ServiceCIDRs {
		if !prefix.Contains(netip.MustParseAddr(made.Spec.ClusterIPs[i])) {
			t.Errorf("cluster IPs %v are not in %v", made.Spec.ClusterIPs, cluster.Options().ServiceCIDRs)
		}
	}
	for i, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeIPv4} {
		endpoint := readyEndpoints(t, cluster, namespace, "web", family, 1)[0]
		if !cluster.Options().PodCIDRs[i].Contains(netip.MustParseAddr(endpoint.Addresses[0])) {
			t.Errorf("address %s is not in %s", endpoint.Addresses[0], cluster.Options().PodCIDRs[i])
		}
	}
}

func TestCRDsAreServed(t *testing.T) {
	t.Parallel()
	for _, cluster := range clusters(t) {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			for _, resource := range []string{"serviceexports", "serviceimports"} {
				gvr := schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: version, Resource: resource}
				if _, err := cluster.Dynamic().Resource(gvr).List(t.Context(), metav1.ListOptions{}); err != nil {
					t.Errorf("%s %s: %v", version, resource, err)
				}
			}
		}
	}
}
