// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
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
	b.list()
	annotated := func(key, value string) *unstructured.Unstructured {
		raw := importOf("web", mcsv1beta1.ClusterSetIP)
		raw.SetAnnotations(map[string]string{key: value})
		return raw
	}
	put(t, services.Add(serviceOf("named", "10.43.0.1", "fd00::1")))
	put(t, services.Add(serviceOf("headless", "None", "127.0.0.1")))
	b.after(t, b.imports.Add(importOf("web", mcsv1beta1.ClusterSetIP)), "web", "without other addresses", "")
	b.after(t, b.slices.Add(sliceOf("a", "web", "east", "10.45.0.1")), "web", "its slices", "10.45.0.1")
	b.after(t, services.Add(serviceOf("amcs-web", "10.43.0.6")), "web", "ACK One's Service", "10.43.0.6")
	b.after(t, services.Add(serviceOf("antrea-mc-web", "10.43.0.4")), "web", "Antrea's Service", "10.43.0.4")
	b.after(t, services.Add(serviceOf("derived-web", "10.43.0.3")), "web", "Karmada's Service", "10.43.0.3")
	b.after(t, services.Add(serviceOf("derived-scaifns3gd", "10.43.0.2")), "web", "the reference implementation's Service", "10.43.0.2")
	b.after(t, b.imports.Update(importOf("web", mcsv1beta1.ClusterSetIP, "None", "127.0.0.1")), "web", "IPs that are none", "10.43.0.2")
	b.after(t, b.imports.Update(annotated("net.gke.io/derived-service", "named")), "web", "an annotation", "10.43.0.1")
	b.after(t, b.imports.Update(annotated("multicluster.k8s.aws/derived-service", "{")), "web", "no list of names", "10.43.0.2")
	put(t, services.Add(serviceOf("a.b", "10.43.0.7")))
	b.after(t, b.imports.Update(annotated("multicluster.kubernetes.io/derived-service", "a.b")), "web", "no name of a Service", "10.43.0.2")
	put(t, b.imports.Update(annotated("net.gke.io/derived-service", "named")))
	b.after(t, services.Update(serviceOf("named", "10.43.0.9")), "web", "another IP", "10.43.0.9")
	put(t, b.imports.Update(annotated("multicluster.k8s.aws/derived-service",
		`[{"cluster":"a","derived-service":"derived-web"},{"cluster":"b","derived-service":"named"},{"derived-service":"named"},{}]`)))
	b.expect(t, "web", "several Services", "10.43.0.3 10.43.0.9")
	b.after(t, b.imports.Update(annotated("multicluster.kubernetes.io/derived-service", "headless")), "web", "a Service without IPs", "10.45.0.1")
	put(t, b.imports.Update(annotated("multicluster.kubernetes.io/derived-service", "gone")))
	b.after(t, services.Add(serviceOf("gone", "10.43.0.5")), "web", "a Service that comes", "10.43.0.5")
	b.after(t, services.Replace([]any{serviceOf("named", "10.43.0.9")}, "9"), "web", "a Service that goes", "10.45.0.1")
	b.after(t, b.imports.Update(importOf("web", mcsv1beta1.ClusterSetIP, "10.42.0.1")), "web", "an IP of its own", "10.42.0.1")
	b.after(t, b.imports.Update(importOf("web", mcsv1beta1.Headless)), "web", "a headless import", "10.45.0.1")

	without := newBench(t, Options{})
	put(t, without.imports.Add(importOf("web", mcsv1beta1.ClusterSetIP)))
	put(t, without.slices.Add(sliceOf("a", "web", "east", "10.45.0.1")))
	without.list()
	without.expect(t, "web", "without the options", "")
}

// mirrored returns a slice that Kubernetes mirrors from the Endpoints object of a Service.
func mirrored(name, service string, addresses ...string) *discoveryv1.EndpointSlice {
	raw := sliceOf(name, "", "", addresses...)
	raw.Labels = map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: record.MirroredBy}
	return raw
}

func TestEndpointsOfGKEComeFromTheServiceThatTheImportNames(t *testing.T) {
	b := newBench(t, Options{Imports: []Resource{ServiceImports, GKEServiceImports}})
	gke, mirrors := b.storeOf(GKEServiceImports), b.storeOf(MirroredEndpointSlices)
	b.list()
	naming := func(kind mcsv1beta1.ServiceImportType, service string) *unstructured.Unstructured {
		raw := importOf("web", kind)
		raw.SetAnnotations(map[string]string{"net.gke.io/derived-service": service})
		return raw
	}
	put(t, mirrors.Add(mirrored("a", "gke-mcs-1", "10.1.0.1")))
	b.after(t, mirrors.Add(mirrored("b", "gke-mcs-2", "10.2.0.1")), "web", "no import", "")
	b.after(t, b.imports.Add(naming(mcsv1beta1.Headless, "gke-mcs-1")), "web", "an import of the other group", "")
	put(t, b.imports.Update(importOf("web", mcsv1beta1.ClusterSetIP, "10.42.0.1")))
	b.after(t, gke.Add(naming(mcsv1beta1.Headless, "gke-mcs-1")), "web", "imports of both groups", "10.42.0.1")
	b.after(t, b.imports.Replace(nil, "2"), "web", "the slices were first", "10.1.0.1")
	if counted := b.index.Skips()[record.InvalidSourceCluster]; counted != 0 {
		t.Errorf("%d slices lack what none has", counted)
	}
	b.after(t, gke.Update(naming(mcsv1beta1.Headless, "gke-mcs-2")), "web", "another Service", "10.2.0.1")
	b.after(t, mirrors.Update(mirrored("b", "gke-mcs-2", "10.2.0.2")), "web", "other endpoints", "10.2.0.2")
	b.after(t, b.slices.Add(sliceOf("d", "web", "east", "10.3.0.1")), "web", "a slice that carries the service's name", "10.2.0.2 10.3.0.1")
	b.after(t, b.slices.Replace(nil, "3"), "web", "lists are of one resource each", "10.2.0.2")
	b.after(t, mirrors.Replace([]any{mirrored("a", "gke-mcs-1", "10.1.0.1")}, "3"), "web", "the slices are gone", "")
	put(t, gke.Replace(nil, "4"))
	put(t, mirrors.Replace(nil, "4"))
	b.drain()
	if held := len(b.services) + len(b.objects[MirroredEndpointSlices]); held > 0 {
		t.Errorf("%d inputs are still held", held)
	}
}

func TestServicesWithoutEndpointsAreIgnored(t *testing.T) {
	b := newBench(t, Options{Imports: []Resource{GKEServiceImports}})
	b.config.IgnoreEmpty = true
	mirrors := b.storeOf(MirroredEndpointSlices)
	b.list()
	named := importOf("web", mcsv1beta1.ClusterSetIP, "10.42.0.1")
	named.SetAnnotations(map[string]string{"net.gke.io/derived-service": "gke-mcs-1"})
	b.after(t, b.storeOf(GKEServiceImports).Add(named), "web", "without endpoints", "")
	b.after(t, mirrors.Add(mirrored("a", "gke-mcs-1", "10.1.0.1")), "web", "with one", "10.42.0.1")
	b.after(t, mirrors.Delete(mirrored("a", "gke-mcs-1")), "web", "without endpoints again", "")
	b.after(t, b.slices.Add(sliceOf("b", "web", "east", "10.2.0.1")), "web", "with a slice that carries the service's name", "10.42.0.1")
	b.after(t, b.slices.Update(sliceOf("b", "web", "east", "!10.2.0.1")), "web", "with an endpoint that is not ready", "")
	b.after(t, b.slices.Update(sliceOf("b", "web", "east", "~10.2.0.1")), "web", "with an endpoint that terminates", "10.42.0.1")
	b.after(t, b.slices.Delete(sliceOf("b", "web", "east")), "web", "without it", "")
	if _, all := b.index.Snapshot(0); len(slices.Collect(all)) > 0 {
		t.Error("a service without endpoints is in zone transfers")
	}
}
