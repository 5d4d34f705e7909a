// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
)

// A watched has how long changes took from the request to the event of a watch.
type watched struct {
	mu sync.Mutex
	// one has one end of each change of which the other one is to come, by slice and resourceVersion.
	one  map[string]time.Time
	took []time.Duration
}

// note notes an end of a change: when it was asked for, or when the watch had it.
func (w *watched) note(slice *discoveryv1.EndpointSlice, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := slice.Namespace + "/" + slice.Name + "/" + slice.ResourceVersion
	other, both := w.one[key]
	if !both {
		w.one[key] = at
		return
	}
	delete(w.one, key)
	w.took = append(w.took, at.Sub(other).Abs())
}

// count is how many changes the watch had.
func (w *watched) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.took)
}

// changes changes slices that imports wrote, at a rate.
func (p *plain) changes(ctx context.Context, result *figure.Floor) error {
	list, err := p.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{LabelSelector: v1beta1.LabelServiceName})
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(list.Items, func(slice discoveryv1.EndpointSlice) bool {
		return !strings.HasPrefix(slice.Namespace, floor)
	})
	rand.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
	// An API server that is busy ends the watch of a client that is slow.
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return p.DiscoveryV1().EndpointSlices("").Watch(ctx, options)
		},
	})
	if err != nil {
		return err
	}
	w := &watched{one: map[string]time.Time{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range events.ResultChan() {
			if slice, ok := event.Object.(*discoveryv1.EndpointSlice); ok {
				w.note(slice, time.Now())
			}
		}
	}()
	err = during(result, func() error {
		group, ctx := errgroup.WithContext(ctx)
		ticker := time.NewTicker(time.Second / time.Duration(p.rate))
		defer ticker.Stop()
		for began := time.Now(); time.Since(began) < p.lasts && ctx.Err() == nil; <-ticker.C {
			for due := int(time.Since(began).Seconds() * float64(p.rate)); result.Count < due; result.Count++ {
				slice, number := own[result.Count%len(own)], result.Count
				group.Go(func() error { return p.change(ctx, w, &slice, number) })
			}
		}
		return group.Wait()
	})
	if err == nil {
		err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return w.count() == result.Count, nil
		})
	}
	events.Stop()
	<-ended
	result.P50, result.P99 = figure.Quantile(w.took, 0.5), figure.Quantile(w.took, 0.99)
	return err
}

// change gives an endpoint another address.
func (p *plain) change(ctx context.Context, w *watched, slice *discoveryv1.EndpointSlice, number int) error {
	changed := slice.DeepCopy()
	changed.ResourceVersion = "" // whatever it is
	changed.Endpoints[0].Addresses = []string{fmt.Sprintf("10.200.%d.%d", number>>8&0xff, number&0xff)}
	at := time.Now()
	changed, err := p.DiscoveryV1().EndpointSlices(slice.Namespace).Update(ctx, changed, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	w.note(changed, at)
	return nil
}
