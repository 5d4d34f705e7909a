// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// granting is an API server that lets an account list and watch in some namespaces, and nothing in all namespaces. Each
// has an import "web", with a time that Go's types cannot decode, and an import that cannot be decoded.
func granting(t *testing.T, namespaces ...string) *clients {
	t.Helper()
	refuse := func(w http.ResponseWriter, err *apierrors.StatusError) {
		w.WriteHeader(int(err.ErrStatus.Code))
		_ = json.NewEncoder(w).Encode(err.ErrStatus)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// apis/<group>/<version>/namespaces/<namespace>/<resource>
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		if len(parts) != 6 || !slices.Contains(namespaces, parts[4]) {
			refuse(w, apierrors.NewForbidden(schema.GroupResource{Group: parts[1], Resource: parts[len(parts)-1]}, "", nil))
			return
		}
		query := r.URL.Query()
		switch {
		case query.Get("sendInitialEvents") != "":
			refuse(w, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil))
		case query.Get("watch") != "":
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case parts[5] == "serviceimports":
			_, _ = fmt.Fprintf(w, `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImportList","metadata":{"resourceVersion":"7"},"items":[
				{"metadata":{"name":"web","namespace":%[1]q},"spec":{"type":"ClusterSetIP","ips":["10.42.0.1"],"ports":[]},
				"status":{"conditions":[{"type":"X","lastTransitionTime":"2026-01-01t00:00:00Z"}]}},
				{"metadata":{"name":"odd","namespace":%[1]q},"spec":{"type":"ClusterSetIP","ports":"none"}}]}`, parts[4])
		default:
			_, _ = fmt.Fprint(w, `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSliceList","metadata":{"resourceVersion":"7"},"items":[]}`)
		}
	}))
	t.Cleanup(server.Close)
	c, err := newClients(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRightsInTheNamespacesThatAreListedSuffice: names of a namespace that is forbidden are not known to be absent.
func TestRightsInTheNamespacesThatAreListedSuffice(t *testing.T) {
	for _, test := range []struct {
		granted []string
		options Options
		missing []Resource
	}{
		{[]string{"a", "b"}, Options{Namespaces: []string{"b", "a", "b"}}, nil},
		{[]string{"a"}, Options{Namespaces: []string{"a", "b"}, NoEndpoints: true}, []Resource{ServiceImports}},
	} {
		s := start(granting(t, test.granted...), test.options, config, newRecorder())
		defer s.close()
		<-s.Settled()
		state := s.Index().State()
		if missing := s.Missing(); !slices.Equal(missing, test.missing) || (state == nil) != (missing != nil) {
			t.Fatalf("of %v, %v is granted: missing are %v, the state %v", test.options.Namespaces, test.granted, missing, state)
		}
		if state != nil && (state.Totals.ClusterSetIP != 2 || state.Totals.Skips[object.Undecodable] != 2) {
			t.Errorf("served is %+v, want a service of each namespace", state.Totals)
		}
	}
}

func TestAListOfOneNamespaceTakesNothingOutOfAnother(t *testing.T) {
	b := newBench(t, Options{Namespaces: []string{"a", "demo"}})
	other := &store{scope{ServiceImports, "a"}, b.Source}
	demo := &store{scope{ServiceImports, "demo"}, b.Source}
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
		{[]string{"b", "a", "b"}, 2, false},
		{namespaces, maxNamespaces, false},
		{append(namespaces, "one-more"), 1, true},
	} {
		watched := Options{Namespaces: test.namespaces}.watchedNamespaces()
		if len(watched) != test.watches || slices.Contains(watched, "") != test.all {
			t.Errorf("of %d namespaces %q are watched", len(test.namespaces), watched)
		}
	}
}
