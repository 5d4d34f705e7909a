// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

func serviceOf(name string, ips ...string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "demo"},
		Spec:       corev1.ServiceSpec{ClusterIPs: ips},
	}
}

func TestAddressesThatAnImportIsWantingComeFromElsewhere(t *testing.T) {
	b := newBench(t, Options{FallbackServices: true, FallbackEndpoints: true})
	services := b.storeOf(Services)
	x := b.Index()
	b.list()
	expect := func(step, want string) {
		t.Helper()
		b.drain()
		if got := reply(x, "web"); got != want {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
	annotated := func(key, value string) *unstructured.Unstructured {
		raw := importOf("web", mcsv1beta1.ClusterSetIP)
		raw.SetAnnotations(map[string]string{key: value})
		return raw
	}
	put(t, services.Add(serviceOf("named", "10.43.0.1", "fd00::1")))
	put(t, services.Add(serviceOf("headless", "None")))
	put(t, b.imports.Add(importOf("web", mcsv1beta1.ClusterSetIP)))
	expect("nothing stands in", "")
	put(t, b.slices.Add(sliceOf("a", "web", "east", "10.45.0.1")))
	expect("its slices", "10.45.0.1")
	put(t, services.Add(serviceOf("antrea-mc-web", "10.43.0.4")))
	expect("Antrea's Service", "10.43.0.4")
	put(t, services.Add(serviceOf("derived-web", "10.43.0.3")))
	expect("Karmada's Service", "10.43.0.3")
	put(t, services.Add(serviceOf("derived-scaifns3gd", "10.43.0.2")))
	expect("the reference implementation's Service", "10.43.0.2")
	put(t, b.imports.Update(annotated("net.gke.io/derived-service", "named")))
	expect("an annotation", "10.43.0.1")
	put(t, services.Update(serviceOf("named", "10.43.0.9")))
	expect("another IP", "10.43.0.9")
	put(t, b.imports.Update(annotated("multicluster.k8s.aws/derived-service",
		`[{"cluster":"a","derived-service":"derived-web"},{"cluster":"b","derived-service":"named"}]`)))
	expect("several Services", "10.43.0.3 10.43.0.9")
	put(t, b.imports.Update(annotated("multicluster.kubernetes.io/derived-service", "headless")))
	expect("a Service without IPs", "10.45.0.1")
	put(t, b.imports.Update(annotated("multicluster.kubernetes.io/derived-service", "gone")))
	put(t, services.Add(serviceOf("gone", "10.43.0.5")))
	expect("a Service that comes", "10.43.0.5")
	put(t, services.Replace([]any{serviceOf("named", "10.43.0.9")}, "9"))
	expect("a Service that goes", "10.45.0.1")
	put(t, b.imports.Update(importOf("web", mcsv1beta1.ClusterSetIP, "10.42.0.1")))
	expect("an IP of its own", "10.42.0.1")
	if b.objects[Services] != 1 {
		t.Errorf("held are %d Services, want 1", b.objects[Services])
	}
	put(t, b.imports.Update(importOf("web", mcsv1beta1.Headless)))
	expect("a headless import", "10.45.0.1")
}

func TestWithoutTheOptionNothingStandsIn(t *testing.T) {
	b := newBench(t, Options{})
	x := b.Index()
	b.list()
	put(t, b.imports.Add(importOf("web", mcsv1beta1.ClusterSetIP)))
	put(t, b.slices.Add(sliceOf("a", "web", "east", "10.45.0.1")))
	b.drain()
	if got := reply(x, "web"); got != "" {
		t.Errorf("answered with %q", got)
	}
}

func TestImportsOfSeveralGroups(t *testing.T) {
	b := newBench(t, Options{Imports: []Resource{ServiceImports, GKEServiceImports}})
	gke := b.storeOf(GKEServiceImports)
	x := b.Index()
	b.list()
	for _, step := range []struct {
		change func() error
		want   string
	}{
		{func() error { return gke.Add(importOf("web", mcsv1beta1.ClusterSetIP, "10.43.0.1")) }, "10.43.0.1"},
		{func() error { return b.imports.Add(importOf("web", mcsv1beta1.ClusterSetIP, "10.42.0.1")) }, "10.42.0.1"},
		{func() error { return gke.Update(importOf("web", mcsv1beta1.ClusterSetIP, "10.43.0.2")) }, "10.42.0.1"},
		{func() error { return b.imports.Replace(nil, "2") }, "10.43.0.2"},
		{func() error { return gke.Replace(nil, "2") }, ""},
	} {
		put(t, step.change())
		b.drain()
		if got := reply(x, "web"); got != step.want {
			t.Errorf("answered with %q, want %q", got, step.want)
		}
	}
	if len(b.inputs.services) > 0 || b.objects[ServiceImports] != 0 || b.objects[GKEServiceImports] != 0 {
		t.Errorf("held are %d services, %v", len(b.inputs.services), b.objects)
	}
}

func TestBookkeepingIsNoName(t *testing.T) {
	b := newBench(t, Options{})
	x := b.Index()
	b.list()
	raw := importOf("web", mcsv1beta1.ClusterSetIP, "10.42.0.1")
	put(t, b.imports.Add(raw))
	b.drain()
	if got := reply(x, "web"); got != "10.42.0.1" {
		t.Fatalf("answered with %q", got)
	}
	// It turns out to stand for a service of another namespace.
	raw = raw.DeepCopy()
	raw.SetLabels(map[string]string{"lighthouse.submariner.io/sourceNamespace": "other"})
	put(t, b.imports.Update(raw))
	b.drain()
	if got, counted := reply(x, "web"), b.served.Skips[object.Bookkeeping]; got != "" || counted != 1 {
		t.Errorf("answered with %q, counted are %d", got, counted)
	}
	put(t, b.imports.Delete(raw))
	b.drain()
	if counted := b.served.Skips[object.Bookkeeping]; counted != 0 || b.objects[ServiceImports] != 0 {
		t.Errorf("counted are %d, held %d", counted, b.objects[ServiceImports])
	}
}
