// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"slices"
	"testing"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
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

func TestManyNamespacesAreWatchedTogether(t *testing.T) {
	var namespaces []string
	for i := range maxNamespaces {
		namespaces = append(namespaces, fmt.Sprint("n", i))
	}
	for _, test := range []struct {
		namespaces []string
		watches    int
		all        bool
	}{
		{nil, 1, true},
		{namespaces, maxNamespaces, false},
		{append(namespaces, "one-more"), 1, true},
		{[]string{"b", "a", "b"}, 2, false},
	} {
		watched := Options{Namespaces: test.namespaces}.watchedNamespaces()
		if len(watched) != test.watches || slices.Contains(watched, "") != test.all {
			t.Errorf("of %d namespaces %q are watched", len(test.namespaces), watched)
		}
	}
}
