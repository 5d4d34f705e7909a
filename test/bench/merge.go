// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/objects"
	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
)

const mergeText = `
What it takes, in one process, to decide what a service that several clusters export becomes in one of them, as after each
change of it: to read the slices that the clusters publish (*views*), and to merge the views into the objects that should
exist (*merge*). The service is headless, its endpoints are spread over the clusters, in slices of ten. Processor time, with
that of the garbage collector.`

// mergeSizes are the numbers of clusters and of endpoints in all.
var mergeSizes = [][2]int{{2, 10}, {2, 1000}, {2, 10_000}, {20, 10}, {20, 1000}, {20, 10_000}, {200, 10}, {200, 1000}, {200, 10_000}}

// merges measures merges of services.
func merges(_ context.Context, b *bench) (figure.Table, error) {
	table := figure.Table{Title: "Merges", Text: mergeText}
	for _, size := range mergeSizes {
		if b.quick && size[1] > 1000 {
			continue
		}
		f, err := b.merge(size[0], size[1])
		if err != nil {
			return table, err
		}
		table.Figures = append(table.Figures, f)
	}
	return table, nil
}

// published is what a cluster publishes of a service, its own view of it, and the objects behind that.
type published struct {
	cluster string
	view    *export.View
	slices  []*discoveryv1.EndpointSlice
}

// publish makes an export of a service by a cluster.
func publish(cluster string, name types.NamespacedName, created time.Time, endpoints int, addresses *objects.Set) (published, error) {
	exports := objects.Exports{Set: objects.Set{Namespace: name.Namespace}}
	exports.Headless(endpoints)
	service := exports.Services[0]
	service.Name = name.Name
	service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	for _, slice := range exports.Slices {
		slice.Labels[discoveryv1.LabelServiceName] = name.Name
		for i := range slice.Endpoints {
			slice.Endpoints[i].Addresses = []string{addresses.NextAddress().String()}
		}
	}
	serviceExport := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
		Name: name.Name, Namespace: name.Namespace, CreationTimestamp: metav1.NewTime(created),
	}}
	view, problems, invalid := export.FromService(cluster, serviceExport, service, exports.Slices)
	if invalid != nil || len(problems) > 0 {
		return published{}, fmt.Errorf("the export of %s by %s is not valid: %v %v", name, cluster, invalid, problems)
	}
	result := merge.Merge(merge.Observed{Cluster: cluster, Service: name, ServiceExport: serviceExport}, []merge.Contribution{{View: view}})
	return published{cluster, view, result.EndpointSlices}, nil
}

// publishAll makes the exports of a service by clusters called member-<i>, with the endpoints spread over them.
func publishAll(name types.NamespacedName, clusters, endpoints int, addresses *objects.Set) ([]published, error) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all := make([]published, clusters)
	for i := range all {
		part := endpoints*(i+1)/clusters - endpoints*i/clusters
		var err error
		if all[i], err = publish(fmt.Sprintf("member-%d", i), name, created.Add(time.Duration(i)*time.Minute), part, addresses); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// merge measures a service of one size.
func (b *bench) merge(clusters, endpoints int) (figure.Figure, error) {
	f := figure.Figure{What: fmt.Sprintf("%d clusters, %s endpoints", clusters, thousands(endpoints))}
	b.say("merge of %s", f.What)
	name := types.NamespacedName{Namespace: namespace, Name: "db"}
	all, err := publishAll(name, clusters, endpoints, &objects.Set{})
	if err != nil {
		return f, err
	}
	observed := merge.Observed{Cluster: all[0].cluster, Service: name}
	var contributions []merge.Contribution
	read := func() error {
		contributions = []merge.Contribution{{View: all[0].view}}
		for _, p := range all[1:] {
			view, problems := export.FromSlices(export.Source{Cluster: p.cluster}, name, p.slices, nil)
			if view == nil || len(problems) > 0 {
				return fmt.Errorf("what %s publishes cannot be read: %v", p.cluster, problems)
			}
			contributions = append(contributions, merge.Contribution{View: view})
		}
		return nil
	}
	decide := func() error {
		if result := merge.Merge(observed, contributions); len(result.EndpointSlices) == 0 {
			return fmt.Errorf("the merge of %d clusters has no slices", clusters)
		}
		return nil
	}
	views, viewAllocations, err := cost(b, read)
	if err != nil {
		return f, err
	}
	merged, mergeAllocations, err := cost(b, decide)
	if err != nil {
		return f, err
	}
	f.Measured = fmt.Sprintf("views %s, %.0f allocations; merge %s, %.0f allocations", figure.Time(views), viewAllocations,
		figure.Time(merged), mergeAllocations)
	return f, nil
}

// cost is the processor time in nanoseconds, the median of the rounds, and the allocations of doing something once.
func cost(b *bench, do func() error) (nanoseconds, allocations float64, err error) {
	var samples []float64
	for range b.rounds {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		count := 0
		used, err := ownTime(func() error {
			for began := time.Now(); count == 0 || time.Since(began) < 4*b.batch; count++ {
				if err := do(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, 0, err
		}
		runtime.ReadMemStats(&after)
		samples = append(samples, float64(used)/float64(count))
		allocations = float64(after.Mallocs-before.Mallocs) / float64(count)
	}
	return figure.Median(samples), allocations, nil
}

// ownTime is the processor time that this process uses while something is done.
func ownTime(do func() error) (time.Duration, error) {
	before, err := servers.OwnCPU()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := servers.OwnCPU()
	return after - before, err
}
