// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// mirrored is a slice that Kubernetes makes of the Endpoints object of a Service.
func mirrored(name, service string, addresses ...string) *discoveryv1.EndpointSlice {
	raw := sliceOf(name, "", "", addresses...)
	raw.Labels = map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: object.MirroredBy}
	return raw
}

func TestEndpointsOfGKEComeFromTheServiceThatTheImportNames(t *testing.T) {
	b := newBench(t, Options{Imports: []Resource{ServiceImports, GKEServiceImports}})
	gke, mirrors := b.storeOf(GKEServiceImports), b.storeOf(MirroredEndpointSlices)
	x := b.Index()
	b.list()
	expect := func(step, want string) {
		t.Helper()
		b.drain()
		if got := reply(x, "web"); got != want {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
	naming := func(kind mcsv1beta1.ServiceImportType, service string) *unstructured.Unstructured {
		raw := importOf("web", kind)
		raw.SetAnnotations(map[string]string{"net.gke.io/derived-service": service})
		return raw
	}
	put(t, mirrors.Add(mirrored("a", "gke-mcs-1", "10.1.0.1")))
	put(t, mirrors.Add(mirrored("b", "gke-mcs-2", "10.2.0.1")))
	expect("no import", "")
	put(t, b.imports.Add(naming(mcsv1beta1.Headless, "gke-mcs-1")))
	expect("an import of the other group", "")
	put(t, b.imports.Replace(nil, "2"))
	put(t, gke.Add(naming(mcsv1beta1.Headless, "gke-mcs-1")))
	expect("the slices were first", "10.1.0.1")
	if counted := b.served.Skips[object.MissingSourceCluster]; counted != 0 {
		t.Errorf("%d slices lack what none has", counted)
	}
	put(t, gke.Update(naming(mcsv1beta1.Headless, "gke-mcs-2")))
	expect("another Service", "10.2.0.1")
	put(t, mirrors.Update(mirrored("b", "gke-mcs-2", "10.2.0.2")))
	expect("other endpoints", "10.2.0.2")
	put(t, mirrors.Add(mirrored("c", "gke-mcs-2", "10.2.0.3")))
	expect("one slice more", "10.2.0.2 10.2.0.3")
	put(t, mirrors.Update(mirrored("c", "gke-mcs-1", "10.2.0.3")))
	expect("the slice is another Service's", "10.2.0.2")
	put(t, b.slices.Add(sliceOf("d", "web", "east", "10.3.0.1")))
	expect("a slice that carries the service's name", "10.2.0.2 10.3.0.1")
	put(t, b.slices.Replace(nil, "3"))
	expect("lists are of one resource each", "10.2.0.2")
	put(t, mirrors.Replace([]any{mirrored("a", "gke-mcs-1", "10.1.0.1")}, "3"))
	expect("the slices are gone", "")
	put(t, gke.Update(naming(mcsv1beta1.ClusterSetIP, "gke-mcs-1")))
	expect("a VIP that is not there yet", "")
	put(t, gke.Replace(nil, "4"))
	put(t, mirrors.Replace(nil, "4"))
	b.drain()
	if len(b.inputs.services) > 0 || b.objects[MirroredEndpointSlices] != 0 {
		t.Errorf("held are %v, counted %v", b.inputs.services, b.objects)
	}
}

func TestARefusedImportHasNothingInCommonWithMirroredSlices(t *testing.T) {
	b := newBench(t, Options{Imports: []Resource{ServiceImports, GKEServiceImports}})
	refused := importOf("web", "Unknown")
	put(t, b.imports.Add(refused))
	put(t, b.storeOf(MirroredEndpointSlices).Add(mirrored("a", "web", "10.1.0.1")))
	for key, s := range b.inputs.services {
		if s.imported != nil && len(s.slices) > 0 {
			t.Errorf("the refused import demo/web has the slices of Service demo/web, under %q", key)
		}
	}
}

func TestMirroredSlicesAreWatchedWhereAskedFor(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    bool
	}{
		{Options{}, false},
		{Options{Imports: []Resource{ServiceImports}}, false},
		{Options{Imports: []Resource{ServiceImports, GKEServiceImports}}, true},
		{Options{Imports: []Resource{GKEServiceImports}}, true},
		{Options{Imports: []Resource{GKEServiceImports}, NoEndpoints: true}, false},
	} {
		b := newBench(t, test.options)
		b.reflectors(new(clients), test.options)
		watched := slices.Contains(b.resources, MirroredEndpointSlices)
		if watched != test.want {
			t.Errorf("%+v: watched is %v", test.options, watched)
		}
	}
}
