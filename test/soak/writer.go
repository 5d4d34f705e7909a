// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/soak/workload"
)

// namespace is that of all services.
const namespace = "soak"

// A writer changes the services of one cluster.
type writer struct {
	*cluster
	workload.Cluster
}

// write brings the cluster from one state of a service to the next.
func (w *writer) write(ctx context.Context, from, to workload.Service) {
	for _, next := range workload.Path(from, to) {
		w.journal.note("%s: %s becomes %+v", w.Name(), next.Name, next)
		w.journal.changed.Store(&next.Name)
		written := w.judge.Change(w.Name(), next.Name, next.State(), time.Now())
		for _, each := range workload.Writes(from, next, namespace, "soak") {
			w.put(ctx, each)
		}
		written(time.Now())
		w.Services[next.Name], from = next, next
	}
}

// put sends a request until it went well: what was written must be known.
func (w *writer) put(ctx context.Context, each workload.Write) {
	err := eventually(ctx, "write to "+w.Name(),
		func(ctx context.Context) error { return workload.Put(ctx, w.Dynamic(), each) })
	if err != nil && ctx.Err() == nil {
		w.journal.wrong("the soak itself: %v", err)
	}
}
