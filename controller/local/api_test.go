// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// serving is the discovery of an API server with these versions of ServiceExports and ServiceImports. "unknown" is no answer.
type serving struct {
	discovery.ServerResourcesInterfaceWithContext
	versions atomic.Pointer[[2]string]
}

// serve returns the discovery of an API server that serves these versions from now on.
func (s *serving) serve(exports, imports string) *serving {
	s.versions.Store(&[2]string{exports, imports})
	return s
}

func (s *serving) ServerResourcesForGroupVersionWithContext(_ context.Context, version string) (*metav1.APIResourceList, error) {
	var list metav1.APIResourceList
	for name, served := range map[string]string{"serviceexports": s.versions.Load()[0], "serviceimports": s.versions.Load()[1]} {
		if served == "unknown" {
			return nil, errors.New("no answer")
		}
		if strings.Contains(served, strings.TrimPrefix(version, "multicluster.x-k8s.io/")) {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
	}
	if list.APIResources == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
	}
	return &list, nil
}

// TestServedVersion: both resources must have the version, and the process restarts once two answers in succession have another one.
func TestServedVersion(t *testing.T) {
	const both = "v1beta1 v1alpha1"
	for _, test := range []struct{ exports, imports, want string }{
		{both, both, "v1beta1"},
		{"v1alpha1", "v1alpha1", "v1alpha1"},
		{both, "v1alpha1", "v1alpha1"},
		{"v1beta1", "v1alpha1", ""},
		{"v2", "v2", ""},
		{"", "", ""},
		{both, "", ""},
	} {
		a := &API{discovery: new(serving).serve(test.exports, test.imports)}
		if got, err := a.served(t.Context()); err != nil || got != test.want {
			t.Errorf("%v: got %q, %v", test, got, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		reader := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
		server := new(serving).serve("", "")
		a := &API{config: &rest.Config{}, discovery: server, reader: reader, gate: &informer.FreshnessGate{}}
		ctx, cancel := context.WithCancelCause(t.Context())
		var group sync.WaitGroup
		must(t, a.Open(ctx, &group, cancel))
		for _, imports := range []string{both, "", "unknown", "unknown", "unknown", both, "v1alpha1", "unknown", "v1alpha1"} {
			synctest.Wait()
			if ctx.Err() != nil || a.Missing() == "" {
				t.Fatalf("ended before the answer %q: %v", imports, context.Cause(ctx))
			}
			server.serve(both, imports)
			<-time.After(servedEvery)
		}
		group.Wait()
		if !errors.Is(context.Cause(ctx), ErrChanged) {
			t.Errorf("got %v", context.Cause(ctx))
		}
	})
	synctest.Test(t, func(t *testing.T) { // an API server that does not answer serves what it did
		server := new(serving).serve(both, both)
		a := &API{
			config: &rest.Config{}, discovery: server, gate: &informer.FreshnessGate{},
			reader: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
				{Group: v1beta1.GroupName, Version: "v1beta1", Resource: "serviceexports"}: "ServiceExportList",
				{Group: v1beta1.GroupName, Version: "v1beta1", Resource: "serviceimports"}: "ServiceImportList",
			}),
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		var group sync.WaitGroup
		must(t, a.Open(ctx, &group, cancel))
		server.serve(both, "unknown")
		<-time.After(5 * servedEvery)
		if ctx.Err() != nil {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
		cancel(nil)
		group.Wait()
	})
}

// must ends the test if there is an error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
