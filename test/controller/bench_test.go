// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// BenchmarkPropagation patches an endpoint in one cluster and takes the time
// until the slice in the other has it, changes coming far apart and close
// together. It reports milliseconds.
func BenchmarkPropagation(b *testing.B) {
	for _, apart := range []time.Duration{700 * time.Millisecond, 50 * time.Millisecond} {
		b.Run(apart.String(), func(b *testing.B) {
			east, west := bed(b)
			joined(b, east, west)
			demo := namespace(b, east, west)
			west.create(b, demo, headless("db", "10.65.0.1")+serviceExport("db"))
			expect(b, key(demo, "db"), "Headless of west Ready [west/10.65.0.1]", east)
			var took []time.Duration
			for b.Loop() {
				took = append(took, propagate(b, west, east, key(demo, "db"), apart, 60)...)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// propagate changes the service's only endpoint count times and returns how
// long each change took from the API's answer in one cluster to the watch event
// in the other.
func propagate(t testing.TB, from, to *cluster, service types.NamespacedName, apart time.Duration, count int) []time.Duration {
	t.Helper()
	watcher, err := to.DiscoveryV1().EndpointSlices(service.Namespace).Watch(t.Context(), metav1.ListOptions{
		LabelSelector: export.LabelService + "=" + service.Name,
	})
	must(t, err)
	defer watcher.Stop()
	var mu sync.Mutex
	arrived := map[string]time.Time{}
	go func() {
		for event := range watcher.ResultChan() {
			slice, ok := event.Object.(*discoveryv1.EndpointSlice)
			if !ok || len(slice.Endpoints) == 0 {
				continue
			}
			mu.Lock()
			if _, seen := arrived[slice.Endpoints[0].Addresses[0]]; !seen {
				arrived[slice.Endpoints[0].Addresses[0]] = time.Now()
			}
			mu.Unlock()
		}
	}()
	var took []time.Duration
	ticker := time.NewTicker(apart)
	defer ticker.Stop()
	source := from.DiscoveryV1().EndpointSlices(service.Namespace)
	for i := range count {
		<-ticker.C
		address := fmt.Sprintf("10.65.%d.%d", 1+i/200, 1+i%200)
		_, err := source.Patch(t.Context(), service.Name+"-manual", types.JSONPatchType,
			[]byte(fmt.Sprintf(`[{"op":"replace","path":"/endpoints/0/addresses/0","value":%q}]`, address)), metav1.PatchOptions{})
		must(t, err)
		written := time.Now()
		eventually(t, "arrival of "+address, func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			at, ok := arrived[address]
			if !ok {
				return fmt.Errorf("not there yet")
			}
			took = append(took, max(0, at.Sub(written)))
			return nil
		})
	}
	return took
}

// BenchmarkThousandServices exports 1,000 services of 10 endpoints in one
// cluster and takes the time until all are imported in the other, and until 100
// of them are gone again.
func BenchmarkThousandServices(b *testing.B) {
	b.Run("headless", func(b *testing.B) { thousandServices(b, corev1.ClusterIPNone) })
	b.Run("cluster-ip", func(b *testing.B) { thousandServices(b, "") })
}

func thousandServices(b *testing.B, clusterIP string) {
	b.Helper()
	const count, endpoints, gone = 1000, 10, 100
	east, west := bed(b)
	joined(b, east, west)
	demo := namespace(b, east, west)
	name := func(i int) string { return fmt.Sprintf("db-%04d", i) }
	inParallel(b, count, func(ctx context.Context, i int) error {
		_, err := west.CoreV1().Services(demo).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name(i)},
			Spec:       corev1.ServiceSpec{ClusterIP: clusterIP, Ports: []corev1.ServicePort{{Name: "db", Port: 5432}}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: name(i) + "-manual", Labels: map[string]string{discoveryv1.LabelServiceName: name(i)}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("db"), Port: ptr.To(int32(5432)), Protocol: ptr.To(corev1.ProtocolTCP)}},
		}
		for j := range endpoints {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses:  []string{fmt.Sprintf("10.%d.%d.%d", 100+j, i/250, i%250+1)},
				Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
			})
		}
		_, err = west.DiscoveryV1().EndpointSlices(demo).Create(ctx, slice, metav1.CreateOptions{})
		return err
	})
	before, err := east.requests(b.Context())
	must(b, err)
	cpu := processCPU(b)
	begin := time.Now()
	go func() {
		inParallel(b, count, func(ctx context.Context, i int) error {
			_, err := west.mcs.MulticlusterV1beta1().ServiceExports(demo).Create(ctx,
				&v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Name: name(i)}}, metav1.CreateOptions{})
			return err
		})
	}()
	imported := func(ctx context.Context) (sets.Set[string], error) {
		names := sets.New[string]()
		imports, err := east.mcs.MulticlusterV1beta1().ServiceImports(demo).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, err
		}
		for _, each := range imports.Items {
			if len(each.Status.Clusters) == 1 {
				names.Insert(each.Name)
			}
		}
		list, err := east.DiscoveryV1().EndpointSlices(demo).List(ctx, metav1.ListOptions{ResourceVersion: "0", LabelSelector: export.LabelSourceCluster + "=west"})
		if err != nil {
			return nil, err
		}
		with := sets.New[string]()
		for _, each := range list.Items {
			if len(each.Endpoints) == endpoints {
				with.Insert(each.Labels[export.LabelService])
			}
		}
		return names.Intersection(with), nil
	}
	waitFor(b, "all imported", 300*time.Millisecond, func(ctx context.Context) error {
		names, err := imported(ctx)
		if err == nil && len(names) != count {
			err = fmt.Errorf("%d of %d", len(names), count)
		}
		return err
	})
	took := time.Since(begin)
	used := processCPU(b) - cpu
	after, err := east.requests(b.Context())
	must(b, err)
	var requests []string
	for name, number := range after {
		if number != before[name] {
			requests = append(requests, fmt.Sprintf("%s: %v", name, number-before[name]))
		}
	}
	slices.Sort(requests)
	b.Logf("requests to the importing API server:\n%s", strings.Join(requests, "\n"))
	quiet(b, east, west)

	begin = time.Now()
	inParallel(b, gone, func(ctx context.Context, i int) error {
		return west.mcs.MulticlusterV1beta1().ServiceExports(demo).Delete(ctx, name(i), metav1.DeleteOptions{})
	})
	waitFor(b, "un-exported", 50*time.Millisecond, func(ctx context.Context) error {
		names, err := imported(ctx)
		if err == nil && len(names) != count-gone {
			err = fmt.Errorf("%d left", len(names))
		}
		return err
	})
	b.ReportMetric(took.Seconds(), "s/1000-imports")
	b.ReportMetric(used.Seconds(), "cpu-s/both-controllers")
	b.ReportMetric(time.Since(begin).Seconds(), "s/100-unexports")
	b.ReportMetric(0, "ns/op")
}

func inParallel(t testing.TB, count int, do func(context.Context, int) error) {
	t.Helper()
	ctx := t.Context()
	next := make(chan int)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	group.Wait()
}

func waitFor(t testing.TB, what string, every time.Duration, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(every):
		}
	}
}

// processCPU is the processor time that this process, and so both controllers
// and the test itself, used.
func processCPU(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// requests counts the writes that an API server was asked for by anybody, by
// verb and resource, from its own metrics. Leases and Events are left out, and
// what only Kubernetes writes.
func (c *cluster) requests(ctx context.Context) (map[string]float64, error) {
	stream, err := c.CoreV1().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept-Encoding", "identity").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	const name = "apiserver_request_total"
	// All metrics of an API server are megabytes.
	var ofRequests bytes.Buffer
	for lines := bufio.NewScanner(stream); ; {
		if !lines.Scan() {
			if err := lines.Err(); err != nil {
				return nil, err
			}
			break
		}
		if line := lines.Bytes(); bytes.HasPrefix(line, []byte(name+"{")) || bytes.HasPrefix(line, []byte("# TYPE "+name+" ")) {
			ofRequests.Write(append(line, '\n'))
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&ofRequests)
	if err != nil {
		return nil, err
	}
	counts := map[string]float64{}
	for _, metric := range families[name].GetMetric() {
		labels := map[string]string{}
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		if !slices.Contains(countedResources, labels["resource"]) ||
			!slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}, labels["verb"]) || labels["dry_run"] != "" {
			continue
		}
		name := labels["verb"] + " " + labels["resource"]
		if labels["subresource"] != "" {
			name += "/" + labels["subresource"]
		}
		counts[name] += metric.GetCounter().GetValue()
	}
	return counts, nil
}
