// SPDX-License-Identifier: Apache-2.0

// Package reconciler maps changes to services, and reconciles one service at a time: it gathers the input, merges it,
// and applies the result.
package reconciler

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/heartbeat"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/input"
	"github.com/clusterset-dns/clusterset-dns/controller/mcsapi"
	"github.com/clusterset-dns/clusterset-dns/controller/metrics"
	"github.com/clusterset-dns/clusterset-dns/controller/packed"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// EventUnreadable is the reason of the Event on a ServiceExport or ServiceImport that cannot be decoded.
const EventUnreadable = "Unreadable"

// Config is what a Reconciler needs.
type Config struct {
	*input.Gatherer
	API      *mcsapi.Follower
	Gate     *informer.FreshnessGate
	Recorder record.EventRecorder
	Clock    clock.WithTicker
	Metrics  *metrics.Metrics
}

// A Reconciler reconciles the services that the caches and the members show changes of.
type Reconciler struct {
	Config
	shares *shares
	queue  *queue
	plans  plans
	// refusals are those that were reported.
	refusals refusals
	turn     turn
	// record is set by Run.
	record *heartbeat.Record
}

// New returns a Reconciler that handles the events of the members. It is to be called before they run.
func New(config Config) *Reconciler {
	r := &Reconciler{Config: config, queue: newQueue(config.Cluster, config.Applier)}
	r.Members.Handle(r)
	r.Tracker.Handle(r)
	return r
}

// Attach handles the events of the local cluster from now on, and enqueues all services that its caches show. What the
// cluster exports comes first: the heartbeat waits for it. The caches must be full, and the members not run yet: their
// services have turns of their own.
func (r *Reconciler) Attach() {
	r.Properties.Handle(r.propertiesChanged)
	r.setClusterSet()
	r.API.Handle(accessHandler{onChange(r.exportOrImportChanged), r})
	r.Local.Services.Handle(onChange(r.serviceChanged))
	r.Local.EndpointSlices.Handle(r.sliceHandler())
	r.Local.Namespaces.Handle(r.namespaceHandler())
	r.Local.Nodes.Handle(r.nodeHandler())
	r.Local.Secrets.Handle(onChange(func(change) { r.Members.Refresh() }))

	if namespace := r.Local.Namespace(r.Namespace); namespace != nil {
		r.checkRank(namespace)
	}
	for service := range r.Exported() {
		r.enqueue(service)
	}
	r.EnqueueAll()
}

// Limit bounds the imports of all members together, and those with a cluster IP. It is to be called before the members
// run.
func (r *Reconciler) Limit(imports, ips int) { r.shares = newShares(imports, ips, r) }

// ImportLimit returns how many services are imported of members, and how many may be.
func (r *Reconciler) ImportLimit() state.Limit {
	r.shares.mu.Lock()
	defer r.shares.mu.Unlock()
	of := r.shares.kinds[export.LimitImports]
	return state.Limit{Name: "max-imports", Used: of.Admitted(), Max: of.most}
}

// Pending returns the number of services that wait to be reconciled, also those that failed and are due later.
func (r *Reconciler) Pending() int { return r.queue.pending() + r.turn.len() }

// QueueLength returns the number of services that wait to be reconciled.
func (r *Reconciler) QueueLength() int { return r.queue.Len() + r.turn.len() }

// Run reconciles with so many workers until the context ends, and notes in the record how that goes.
func (r *Reconciler) Run(ctx context.Context, workers int, record *heartbeat.Record) {
	r.record = record
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { r.catchUp(ctx) })
	for range workers {
		group.Go(func() { r.work(ctx) })
	}
	<-ctx.Done()
	r.ShutDown()
}

// ShutDown stops a Reconciler, whether or not it runs. No event of the local cluster reaches it any more.
func (r *Reconciler) ShutDown() {
	r.API.Handle(nil)
	r.Properties.Handle(nil)
	r.Local.Handle(informer.Ignore)
	r.queue.ShutDown()
}

// work reconciles services from the queue until it is shut down.
func (r *Reconciler) work(ctx context.Context) {
	for {
		service, changes, shutdown := r.queue.Get()
		if shutdown {
			return
		}
		if ctx.Err() != nil {
			r.queue.Done(service) // Get returns what is left before it reports the shutdown
			continue
		}
		reading := r.Gate.Wait(ctx)
		if r.queue.more(service) {
			changes = nil // what an informer listed meanwhile belongs to the slices
		}
		begin := r.Clock.Now()
		scope, done, err := r.pass(ctx, service, changes, reading)
		if !done {
			r.queue.Done(service)
			continue
		}
		if ctx.Err() != nil {
			r.record.Ends(service, nil) // the term ends
		} else {
			r.record.Ends(service, unpublished(err))
		}
		if apply.Changed(err) {
			r.Metrics.Reconciled(scope, r.Clock.Since(begin), nil)
		} else {
			r.Metrics.Reconciled(scope, r.Clock.Since(begin), err)
		}
		switch {
		case err == nil:
			r.queue.Forget(service)
		case ctx.Err() == nil:
			if r.queue.NumRequeues(service) == apply.FailuresToReport {
				klog.FromContext(ctx).Error(err, "Cannot reconcile a service; retrying", "service", service)
			}
			r.queue.AddRateLimited(service)
		}
		r.queue.Done(service)
	}
}

// pass reconciles the slices of a service that changed if that suffices, and otherwise everything. It begins what the
// caller notes the end of in the record. It returns false if the service waits for its turn instead.
func (r *Reconciler) pass(ctx context.Context, service types.NamespacedName, changes map[sliceKey][]*packed.Slice,
	reading informer.Reading,
) (scope string, done bool, err error) {
	if changes != nil {
		r.record.Begins()
		if r.reconcileSlices(ctx, service, changes, reading) {
			return metrics.ScopeSlice, true, nil
		}
		r.record.PutsOff()
	}
	mayBegin, endTurn := r.takeTurn(service)
	if !mayBegin {
		return "", false, nil
	}
	defer endTurn()
	r.record.Begins()
	return metrics.ScopeService, true, r.reconcile(ctx, service, reading)
}

// unpublished returns why slices that the local cluster publishes are out of date, nil if they are not.
func unpublished(err error) error {
	if unpublished := (*apply.PublishError)(nil); errors.As(err, &unpublished) {
		return unpublished
	}
	return nil
}

// reconcile reconciles one service. The caches were waited for before: reading.
func (r *Reconciler) reconcile(ctx context.Context, service types.NamespacedName, reading informer.Reading) error {
	r.plans.set(service, nil)
	access, lost := r.API.Access()
	namespace := r.Local.Namespace(service.Namespace)
	if namespace == nil || terminating(namespace) {
		r.Metrics.Problems(service, nil)
		r.Local.Use(service, nil)
		r.shares.release(service)
		r.Applier.Forget(service)
		return nil // its objects are deleted with it; a new one enqueues its services
	}
	if access == nil {
		// All services are enqueued once the API is served.
		r.Applier.Forget(service)
		derived, slices := r.Local.DerivedServices(service), r.Local.ManagedSlices(service)
		return r.Applier.Clean(ctx, r.Cluster, derived, slices, lost.Exports, lost.Imports)
	}
	var unreadableExport, ownOnly bool
	if r.Set.Takes(namespace) {
		unreadableExport, ownOnly = r.unreadable(access, service)
	}
	if unreadableExport {
		return nil
	}
	r.shares.load(r.Cluster, r.Set, access.Imports)
	in := r.Gather(access, service)
	if !r.Gate.Holds(reading) {
		// Some of the input may predate an outage.
		return r.reconcile(ctx, service, r.Gate.Wait(ctx))
	}
	r.Metrics.Problems(service, in.Problems)
	r.reportRefusals(ctx, service, in.Refused)
	in.Existing.Failures = r.queue.NumRequeues(service)
	if ownOnly {
		in.Existing = in.Existing.Own()
	}
	result := r.shares.mergeWithin(in.Existing.Observed, in.Contributions)
	if ownOnly {
		result = result.Own(r.Cluster)
	}
	outcome, err := r.Applier.ApplyService(ctx, access, in.Existing, result)
	switch {
	case outcome.Again && err == nil:
		r.enqueue(service)
	case outcome.After > 0:
		r.queue.AddAfter(service, outcome.After)
	case err == nil && result.Plan != nil && !outcome.Again:
		r.plans.set(service, &plan{Plan: result.Plan, access: access, problems: in.Problems})
	}
	return err
}

// unreadable reports whether the ServiceExport or the ServiceImport of a service cannot be decoded, and records an Event on
// the object. Such a ServiceExport withdraws nothing: all objects of the service stay as they are. Such a ServiceImport is
// not created again: it stays with all that it owns, and what the local cluster publishes goes on.
func (r *Reconciler) unreadable(access *mcsapi.Access, service types.NamespacedName) (ofExport, ofImport bool) {
	report := func(object runtime.Object, kind, reason string) bool {
		if reason != "" {
			r.Recorder.Event(object, corev1.EventTypeWarning, EventUnreadable, kind+" "+service.String()+
				" cannot be decoded, so that it stays as it is. Correct or delete it: "+reason)
		}
		return reason != ""
	}
	if object := access.ServiceExport(service); object != nil {
		ofExport = report(object, v1beta1.ServiceExportKindName, mcsapi.Unreadable(object))
	}
	if object := access.ServiceImport(service); object != nil {
		ofImport = report(object, v1beta1.ServiceImportKindName, mcsapi.Unreadable(object))
	}
	return ofExport, ofImport
}

// catchUpAfter is after how long a service is reconciled again if the caches do not show what was written of it.
const catchUpAfter = 10 * time.Second

// catchUp enqueues the services that the caches are behind of.
func (r *Reconciler) catchUp(ctx context.Context) {
	ticker := r.Clock.NewTicker(catchUpAfter)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		for _, service := range r.Applier.Behind(catchUpAfter) {
			r.queue.AddBehind(service)
		}
	}
}
