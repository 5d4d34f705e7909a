// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
)

// bench is a source without an API server. Tests put objects into its stores.
type bench struct {
	*Source
	clock                       time.Time // advances by pause after each publication
	imports, slices, namespaces *store
}

func newBench(tb testing.TB, options Options) *bench {
	tb.Helper()
	s := newSource(options, &record.Config{Cluster: "home", Zones: []string{recordtest.Zone}, TTL: 5})
	b := &bench{
		Source: s, clock: time.Unix(1_800_000_000, 0),
		imports:    s.newStore(ServiceImports, "", false),
		slices:     s.newStore(EndpointSlices, "", false),
		namespaces: s.storeOf(Namespaces),
	}
	s.now = func() time.Time { return b.clock }
	return b
}

// storeOf returns a store for which the source does not wait.
func (s *Source) storeOf(resource Resource) *store { return &store{Source: s, resource: resource} }

// list marks the initial lists as complete.
func (b *bench) list() {
	b.mu.Lock()
	b.imports.note(false)
	b.slices.note(false)
	b.mu.Unlock()
	b.drain()
}

// drain publishes all changes, and returns the number of publications.
func (b *bench) drain() (times int) {
	for {
		select {
		case <-b.changed:
			b.publish()
			b.clock = b.clock.Add(pause)
			times++
		default:
			return times
		}
	}
}

// expect publishes all changes, and compares the answer for a service.
func (b *bench) expect(t *testing.T, service, when, want string) {
	t.Helper()
	b.drain()
	if got := reply(b.Index(), service); got != want {
		t.Errorf("%s %s is answered with %q, want %q", when, service, got, want)
	}
}

// after compares the answer for a service after a change of an object.
func (b *bench) after(t *testing.T, changed error, service, when, want string) {
	t.Helper()
	put(t, changed)
	b.expect(t, service, when, want)
}

func importOf(name string, kind mcsv1beta1.ServiceImportType, ips ...string) *unstructured.Unstructured {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "demo"},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type: kind, IPs: ips, Ports: []mcsv1beta1.ServicePort{{Name: "sql", Port: 5432}},
		},
	})
	if err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: object}
}

func sliceOf(name, service, cluster string, addresses ...string) *discoveryv1.EndpointSlice {
	slice := recordtest.Slice(cluster + ": " + strings.Join(addresses, " "))
	slice.Name, slice.Labels[mcsv1beta1.LabelServiceName] = name, service
	return slice
}
