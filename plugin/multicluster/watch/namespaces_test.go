// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"strings"
	"testing"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

func TestAListOfOneNamespaceTakesNothingOutOfAnother(t *testing.T) {
	b := newBench(t, Options{Namespaces: []string{"a", "demo"}})
	other := &store{Source: b.Source, resource: ServiceImports, namespace: "a"}
	demo := &store{Source: b.Source, resource: ServiceImports, namespace: "demo"}
	put(t, demo.Replace([]any{importOf("web", mcsv1beta1.ClusterSetIP, "10.42.0.1")}, "1"))
	b.list()
	b.after(t, other.Replace(nil, "2"), "web", "after another namespace was listed", "10.42.0.1")
	b.after(t, demo.Replace(nil, "3"), "web", "after its namespace was listed without it", "")
}

func TestWhatIsWatched(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    string // resources with their namespaces; "?" means optional
	}{
		{Options{}, "serviceimports/ endpointslices/"},
		{Options{NoEndpoints: true, FallbackServices: true}, "serviceimports/ services/?"},
		{Options{NamespaceLabels: "a", Nodes: true}, "serviceimports/ endpointslices/ namespaces/ nodes/?"},
		{
			Options{Imports: []Resource{ServiceImports, GKEServiceImports}},
			"serviceimports/ serviceimports.net.gke.io/? endpointslices/ endpointslices.mirrored/",
		},
		{
			Options{Imports: []Resource{GKEServiceImports}},
			"serviceimports.net.gke.io/ endpointslices/ endpointslices.mirrored/",
		},
		{Options{Imports: []Resource{GKEServiceImports}, NoEndpoints: true}, "serviceimports.net.gke.io/"},
		{Options{Namespaces: []string{"b", "a", "b"}}, "serviceimports/a endpointslices/a serviceimports/b endpointslices/b"},
	} {
		s := newSource(test.options, new(record.Config))
		s.reflectors(new(clients))
		var got []string
		for _, each := range s.stores {
			text := string(each.resource) + "/" + each.namespace
			if each.optional {
				text += "?"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%+v: watched are %s, want %s", test.options, text, test.want)
		}
	}
}
