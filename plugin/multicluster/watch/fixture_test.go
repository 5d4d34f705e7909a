// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"sync"
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

// recorder keeps what a source tells.
type recorder struct {
	mu         sync.Mutex
	counted    map[Resource]int
	served     record.Totals
	programmed []string
	failures   []string // lists and watches that failed
	// reported is how often an object began to be undecodable.
	reported int
	synced   map[Resource]time.Time
	healthy  map[Resource]bool
}

func newRecorder() *recorder {
	return &recorder{
		counted: map[Resource]int{}, synced: map[Resource]time.Time{}, healthy: map[Resource]bool{},
	}
}

// keep changes what is kept.
func (r *recorder) keep(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *recorder) Objects(resource Resource, delta int) {
	r.keep(func() { r.counted[resource] += delta })
}

func (r *recorder) Totals(before, after record.Totals) {
	r.keep(func() {
		if !reflect.DeepEqual(before, r.served) {
			panic(fmt.Sprintf("what was served before is %+v, and was told as %+v", before, r.served))
		}
		r.served = after
	})
}

func (r *recorder) Asked(resource Resource, _ string, err error) {
	r.keep(func() {
		r.healthy[resource] = err == nil
		if err != nil {
			r.failures = append(r.failures, fmt.Sprintf("%s: %v", resource, err))
		}
	})
}

func (r *recorder) Watched(Resource, int) {}

func (r *recorder) Confirmed(resource Resource, at time.Time) {
	r.keep(func() { r.synced[resource] = at })
}

func (r *recorder) Undecodable(Resource, string, error) { r.keep(func() { r.reported++ }) }

func (r *recorder) Programmed(headless bool, latency time.Duration) {
	r.keep(func() { r.programmed = append(r.programmed, fmt.Sprintf("headless=%v %v", headless, latency)) })
}

// bench is a source without an API server: tests put objects into its stores.
type bench struct {
	*Source
	*recorder
	clock                       time.Time // a pause later after each publication
	imports, slices, namespaces *store
}

func newBench(tb testing.TB, options Options) *bench { return newBenchOf(tb, options, config) }

// newBenchOf is newBench with the configuration of the index.
func newBenchOf(tb testing.TB, options Options, config *record.Config) *bench {
	tb.Helper()
	r := newRecorder()
	s := newSource(options, config, r, func() {})
	s.missing = map[scope]bool{{resource: ServiceImports}: false, {resource: EndpointSlices}: false}
	b := &bench{
		Source: s, recorder: r, clock: time.Unix(1_800_000_000, 0),
		imports:    s.storeOf(ServiceImports),
		slices:     s.storeOf(EndpointSlices),
		namespaces: s.storeOf(Namespaces),
	}
	s.now = func() time.Time { return b.clock }
	return b
}

func (s *Source) storeOf(resource Resource) *store { return &store{scope{resource: resource}, s} }

// list lists what was put in up to now as all there is.
func (b *bench) list() {
	b.note(scope{resource: ServiceImports}, false)
	b.note(scope{resource: EndpointSlices}, false)
	b.drain()
}

// drain publishes what changed, and returns how often it had to.
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

// expect publishes what changed, and compares the answer for a service.
func (b *bench) expect(t *testing.T, service, when, want string) {
	t.Helper()
	b.drain()
	if got := reply(b.Index(), service); got != want {
		t.Errorf("%s %s is answered with %q, want %q", when, service, got, want)
	}
}

// after expects an answer for a service after a change of an object.
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

// address is the ith of many.
func address(i int) string {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String()
}
