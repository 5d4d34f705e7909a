// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/soak/workload"
)

const (
	// sharedServices may be exported by any cluster, and ownServices of each cluster by that alone.
	sharedServices, ownServices = 8, 2
	// leastExported is more than half of the services of a cluster.
	leastExported = 6
	// operationEvery is the mean time between two operations in one cluster.
	operationEvery = 300 * time.Millisecond
)

// serviceNames are all that any cluster may have.
func serviceNames() []string {
	all := sharedNames()
	for _, cluster := range names {
		all = append(all, ownNames(cluster)...)
	}
	return all
}

func sharedNames() (all []string) {
	for i := range sharedServices {
		all = append(all, fmt.Sprintf("shared-%d", i))
	}
	return all
}

func ownNames(cluster string) (all []string) {
	for i := range ownServices {
		all = append(all, fmt.Sprintf("%s-%d", cluster, i))
	}
	return all
}

// newWriter writes what there is at the beginning.
func newWriter(ctx context.Context, c *cluster, random *rand.Rand) *writer {
	w := &writer{
		cluster: c, Cluster: workload.Cluster{Number: slices.Index(names, c.Name()), LeastExported: leastExported},
	}
	for _, s := range w.Begin(random, append(ownNames(c.Name()), sharedNames()...)) {
		w.write(ctx, workload.Service{Name: s.Name}, s)
	}
	return w
}

// operate changes random services until the context ends. Nothing is changed while the API server is down.
func (w *writer) operate(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, time.Duration(random.Int64N(2*int64(operationEvery))))
		// What is begun is finished.
		w.api.Lock()
		if ctx.Err() == nil {
			if next, kind, changed := w.Operate(random); changed {
				w.write(context.WithoutCancel(ctx), w.Services[next.Name], next)
				w.journal.count("operation: " + kind)
			}
		}
		w.api.Unlock()
	}
}

// settle creates each Service that is missing behind an export.
func (w *writer) settle(ctx context.Context) {
	w.api.Lock()
	defer w.api.Unlock()
	for _, s := range w.Missing() {
		w.write(ctx, w.Services[s.Name], s)
	}
}
