// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
)

// reply returns the answer of the index to an A query for a service of namespace demo, as text.
func reply(x *record.Index, service string) string {
	return replyTo(x, service, record.PreferDefault, record.Client{Size: 65535})
}

func replyTo(x *record.Index, service string, prefer record.Preference, client record.Client) string {
	if x.State() == nil {
		return "SERVFAIL"
	}
	q := record.Question{Name: service + ".demo.svc." + recordtest.Zone, Type: dns.TypeA, Prefer: prefer, Client: client}
	var all []string
	for _, rr := range recordtest.Ask(x, q).Answer {
		all = append(all, strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// put fails the test if a store does not accept an object.
func put(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func TestObjectsComeChangeAndGo(t *testing.T) {
	b := newBench(t, Options{})
	b.after(t, b.imports.Replace(nil, "1"), "db", "before slices were listed", "SERVFAIL")
	b.after(t, b.slices.Replace(nil, "1"), "db", "after all was listed", "")
	<-b.Synced()
	b.after(t, b.slices.Add(sliceOf("a", "db", "east", "10.1.0.1", "10.1.0.2")), "db", "slices without an import", "")
	b.after(t, b.imports.Add(importOf("db", mcsv1beta1.Headless)), "db", "the import", "10.1.0.1 10.1.0.2")
	b.after(t, b.slices.Add(sliceOf("b", "db", "west", "10.2.0.1")), "db", "another slice", "10.1.0.1 10.1.0.2 10.2.0.1")
	b.after(t, b.slices.Update(sliceOf("a", "db", "east", "10.1.0.1")), "db", "fewer endpoints", "10.1.0.1 10.2.0.1")
	b.after(t, b.slices.Update(sliceOf("b", "other", "west", "10.2.0.1")), "db", "a slice that changes its service", "10.1.0.1")
	b.after(t, b.imports.Update(importOf("db", mcsv1beta1.ClusterSetIP, "10.42.0.1")), "db", "another type", "10.42.0.1")
	b.after(t, b.imports.Update(importOf("db", mcsv1beta1.Headless)), "db", "and back", "10.1.0.1")
	b.after(t, b.slices.Replace([]any{sliceOf("c", "db", "east", "10.1.0.9")}, "9"), "db", "another list", "10.1.0.9")
	b.after(t, b.imports.Add(importOf("web", mcsv1beta1.ClusterSetIP, "10.42.0.1")), "web", "another import", "10.42.0.1")
	internal := importOf("api", mcsv1beta1.ClusterSetIP, "10.42.0.2")
	internal.SetLabels(map[string]string{"lighthouse.submariner.io/sourceNamespace": "other"})
	b.after(t, b.imports.Add(internal), "api", "an internal import of Submariner", "")
	put(t, b.imports.Delete(internal))
	put(t, b.imports.Delete(importOf("web", mcsv1beta1.ClusterSetIP)))
	b.after(t, b.imports.Delete(importOf("db", mcsv1beta1.Headless)), "db", "no import", "")
	b.after(t, b.slices.Delete(sliceOf("c", "db", "east")), "db", "nothing", "")
	if held := len(b.services) + len(b.dirty) +
		len(b.objects[EndpointSlices]) + len(b.objects[ServiceImports]); held > 0 {
		t.Errorf("%d inputs are still held", held)
	}
}

func TestNamespacesAreSelectedByLabel(t *testing.T) {
	b := newBench(t, Options{NamespaceLabels: "a=b"})
	b.list()
	demo := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	b.after(t, b.imports.Add(importOf("web", mcsv1beta1.ClusterSetIP, "10.42.0.1")), "web", "in a namespace without labels", "")
	b.after(t, b.namespaces.Add(demo), "web", "in a namespace that gets them", "10.42.0.1")
	b.after(t, b.namespaces.Delete(demo), "web", "in a namespace that loses them", "")
	b.after(t, b.namespaces.Replace([]any{demo}, "1"), "web", "in a namespace of another list", "10.42.0.1")
	b.after(t, b.namespaces.Replace(nil, "1"), "web", "in a namespace that is not in the last list", "")
}

func TestProgrammingLatencyIsThatOfTheOriginsCause(t *testing.T) {
	var programmed []string
	before := programming
	programming = prometheus.ObserverFunc(func(seconds float64) { programmed = append(programmed, fmt.Sprint(seconds)) })
	t.Cleanup(func() { programming = before })
	b := newBench(t, Options{})
	const ours, kubernetes = "clusterset-dns.github.io/last-change-trigger-time", corev1.EndpointsLastChangeTriggerTime
	caused := func(key string, seconds int64, slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
		slice.Annotations[key] = time.Unix(1_800_000_000-seconds, 0).UTC().Format(time.RFC3339Nano)
		return slice
	}
	put(t, b.imports.Add(importOf("db", mcsv1beta1.Headless)))
	put(t, b.imports.Add(importOf("web", mcsv1beta1.ClusterSetIP, "10.42.0.1")))
	put(t, b.slices.Add(caused(ours, 3600, sliceOf("a", "db", "east", "10.1.0.1"))))
	b.list()
	if len(programmed) > 0 {
		t.Errorf("what was there before is observed: %q", programmed)
	}
	for _, later := range []*discoveryv1.EndpointSlice{
		caused(ours, 2, sliceOf("a", "db", "east", "10.1.0.2")),
		caused(kubernetes, 1, sliceOf("b", "web", "east", "10.1.0.3")),
		caused(kubernetes, 1, sliceOf("a", "db", "east", "10.1.0.3")),
		caused(ours, 1, sliceOf("a", "db", "west", "10.1.0.3")),          // with the cause of the last change
		caused(kubernetes, 1, sliceOf("a", "db", "east", "10.1.0.4")),    // the same again
		caused(kubernetes, 3000, sliceOf("a", "db", "east", "10.1.0.4")), // without effect on DNS
		caused(kubernetes, 3000, sliceOf("a", "db", "east", "10.1.0.5")), // the change must not be attributed to this old cause
	} {
		put(t, b.slices.Update(later))
		b.drain()
	}
	// Causes of a service that waits are observed once, when the service is published.
	b.clock = b.clock.Add(-pause / 2)
	put(t, b.slices.Update(caused(ours, 4, sliceOf("a", "db", "east", "10.1.0.6"))))
	b.drain()
	put(t, b.slices.Update(caused(ours, 3, sliceOf("a", "db", "east", "10.1.0.7"))))
	b.publish()
	slices.Sort(programmed)
	if want := []string{"1.2", "1.3", "2.1", "3.75", "4.75"}; !slices.Equal(programmed, want) {
		t.Errorf("observed are %q, want %q", programmed, want)
	}
}

// TestGauges: gauges cover all running sources. If a resource has several watches, as with several namespaces, the worst counts.
func TestGauges(t *testing.T) {
	expect := func(when, want string) {
		t.Helper()
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(gauges{})
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				name := strings.TrimPrefix(family.GetName(), "coredns_multicluster_")
				got = append(got, fmt.Sprint(name, " ", metric.GetLabel()[0].GetValue(), " ", metric.GetGauge().GetValue()))
			}
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s the gauges are %s, want %s", when, text, want)
		}
	}
	run := func(name string, kind mcsv1beta1.ServiceImportType, clock int64) *bench {
		b := newBench(t, Options{})
		b.clock = time.Unix(clock, 0)
		put(t, b.imports.Add(importOf("b.d", mcsv1beta1.Headless)))
		put(t, b.imports.Replace([]any{importOf(name, kind, "10.42.0.1"), importOf("b.d", mcsv1beta1.Headless)}, "1"))
		sources.byKey[name] = b.Source
		t.Cleanup(func() { delete(sources.byKey, name) })
		return b
	}
	expect("without a source", "")
	first := run("web", mcsv1beta1.ClusterSetIP, 100)
	first.imports.asked(nil)
	expect("before slices are listed", "last_sync_timestamp_seconds endpointslices 0, last_sync_timestamp_seconds serviceimports 100, "+
		"objects serviceimports 2, watch_healthy endpointslices 0, watch_healthy serviceimports 1")
	first.slices.asked(nil)
	first.slices.UpdateResourceVersion("1")
	first.list()
	second := run("api", mcsv1beta1.ClusterSetIP, 50)
	second.slices.asked(nil)
	second.list()
	second.clock = time.Unix(200, 0)
	second.slices.UpdateResourceVersion("1")
	expect("with two", "last_sync_timestamp_seconds endpointslices 100, last_sync_timestamp_seconds serviceimports 50, "+
		"objects serviceimports 4, skipped invalid_name 2, "+
		"watch_healthy endpointslices 1, watch_healthy serviceimports 0")
}
