// SPDX-License-Identifier: Apache-2.0

// Package reconciler maps changes to services, and reconciles one service at a time: it gathers the input, merges it,
// and applies the result.
package reconciler

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/heartbeat"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// Config has the dependencies of a Reconciler.
type Config struct {
	// Cluster is the id of the local cluster, and Namespace the controller's namespace.
	Cluster, Namespace string
	scope.Admission
	// ServiceCIDRs are the local cluster's ranges of Services, one for each IP family.
	ServiceCIDRs []netip.Prefix
	// Prefer is the list of tiers in placement.Here.
	Prefer string
	// Expose is how exports are exposed to other networks: see export.Exporter.
	Expose    export.Exposure
	Frontends *local.Frontends
	Pods      *local.Pods
	// ProbeService is the Service by which clusters of other networks reach the probe targets.
	ProbeService types.NamespacedName

	Local *local.Cluster
	// Properties are the local cluster's ClusterProperties.
	Properties *local.Properties
	Members    *member.Members
	Tracker    *memberstate.Tracker
	Applier    *apply.Applier
	Clock      clock.WithTicker
	API        *local.API
	Gate       *informer.FreshnessGate
	// Observe observes one reconcile.
	Observe func(took time.Duration, err error)
}

// A Reconciler reconciles the services that changes in the caches and in members affect.
type Reconciler struct {
	Config
	// ips shares cluster IPs among the members, for imports of services that the local cluster does not export itself.
	ips    *limits.IPs
	queue  *queue
	echoes *echoes
	turns  *turns
	// memories are the memories of exports, by service.
	memories sync.Map
	// heartbeat is set by Run.
	heartbeat *heartbeat.Renewer
	// working is the number of services that are being reconciled.
	working atomic.Int64
	// failing has the error of each service that keeps failing, and partial the Partials of each service with problems.
	failing, partial sync.Map
}

// A Partial is a reason why a service of a cluster is partially imported.
type Partial struct {
	Cluster string
	Reason  export.Reason
}

// New returns a Reconciler that handles the events of the members, and shares the cluster IPs among them. Call it before
// members join.
func New(config Config) *Reconciler {
	r := &Reconciler{
		Config: config, queue: newQueue(), echoes: newEchoes(), turns: newTurns(), ips: limits.NewIPs(maxImportIPs(config.ServiceCIDRs)),
	}
	r.Members.Share(r.ips.Pool)
	r.Members.Handle(r)
	r.Tracker.Handle(r.MemberChanged)
	return r
}

// Attach handles the events of the local cluster from now on, and enqueues all services in its caches. The cluster's
// exports come first, because the heartbeat waits for them. The caches must be full. The members must not run yet: they
// enqueue their services themselves.
func (r *Reconciler) Attach() {
	r.API.Exports.Handle(onChange(r.onExportOrImport))
	r.API.Imports.Handle(onChange(r.onExportOrImport))
	r.Local.Services.Handle(onChange(r.onService))
	r.Local.EndpointSlices.Handle(onChange(r.onSlice))
	r.Local.Namespaces.Handle(r.onNamespace)
	r.Local.Nodes.Handle(r.onNode)
	r.Local.Secrets.Handle(func(_, _ metav1.Object) { r.Members.Refresh() })

	for service := range r.Exported() {
		r.queue.Add(service)
	}
	r.onProperties()
}

// Late implements heartbeat.Config.Late. Without the MCS API, the exports of the local cluster are unknown.
func (r *Reconciler) Late(longer time.Duration) string {
	if r.API.Version() == "" {
		return "ServiceExports"
	}
	return r.Gate.Late(longer)
}

// QueueLength returns the number of services that are being reconciled or wait for it.
func (r *Reconciler) QueueLength() int { return r.queue.Len() + int(r.working.Load()) }

// Failing returns the services that failed apply.FailuresToReport times in a row or more often, each with its last error.
func (r *Reconciler) Failing() map[types.NamespacedName]error { return all[error](&r.failing) }

// Partial returns the services that are partially imported, each with the reasons, which are shared.
func (r *Reconciler) Partial() map[types.NamespacedName]map[Partial]bool {
	return all[map[Partial]bool](&r.partial)
}

// all returns the values by service, in a new map.
func all[T any](known *sync.Map) map[types.NamespacedName]T {
	copied := map[types.NamespacedName]T{}
	known.Range(func(service, value any) bool {
		copied[service.(types.NamespacedName)] = value.(T)
		return true
	})
	return copied
}

// notePartial replaces the problems of a service's exports. It keeps only the reasons, because texts may be large.
func (r *Reconciler) notePartial(service types.NamespacedName, problems map[string][]export.Problem) {
	reasons := map[Partial]bool{}
	for cluster, of := range problems {
		for _, each := range of {
			reasons[Partial{cluster, each.Reason}] = true
		}
	}
	if len(reasons) > 0 {
		r.partial.Store(service, reasons)
	} else {
		r.partial.Delete(service)
	}
}

// Run reconciles with the given number of workers until the context ends, and reports the outcome to the heartbeat. Call
// it after Attach, once the members have joined.
func (r *Reconciler) Run(ctx context.Context, workers int, beat *heartbeat.Renewer) {
	r.heartbeat = beat
	admitExisting(r.ips, r.Cluster, r.API.Imports.List())
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { r.Properties.Run(ctx, r.onProperties) })
	group.Go(func() {
		r.Frontends.Run(ctx, r.names, func() { r.enqueueExposed(export.ExposeLoadBalancer, export.ExposeGateway) })
	})
	for range workers {
		group.Go(func() { r.work(ctx) })
	}
	<-ctx.Done()
	r.ShutDown()
}

// ShutDown stops a Reconciler, whether or not it runs.
func (r *Reconciler) ShutDown() { r.queue.ShutDown() }

// work reconciles services from the queue until it is shut down.
func (r *Reconciler) work(ctx context.Context) {
	for {
		service, shutdown := r.queue.Get()
		if shutdown {
			return
		}
		r.working.Add(1)
		share, most := service.Namespace, atOnce
		if r.Encoded(service) >= large {
			share, most = "", 1
		}
		for has := r.turns.take(share, most, service); has; service, has = r.turns.next(share) {
			rest := time.Duration(0)
			if ctx.Err() == nil { // Get returns the remaining services before it reports the shutdown
				rest = r.pass(ctx, service)
			}
			r.working.Add(-1)
			r.queue.Rest(service, rest)
		}
	}
}

// large is the encoded size in bytes from which the slices of a service count as large. Decoded, they take about ten
// times as much, so large services are reconciled one at a time.
const large = 256 << 10

// retryStale is the delay of a service whose cached objects are stale. The event that shows the write of the other writer usually
// comes before.
const retryStale = 5 * time.Second

// passWithin bounds each reconcile: an API server answers within a minute, unless the request was lost. Those before the first
// heartbeat, which waits for them, have firstWithin. The next reconcile continues the work.
const passWithin, firstWithin = time.Minute, 10 * time.Second

// pass reconciles a service once, and makes it due again if needed. It returns how long the service rests.
func (r *Reconciler) pass(ctx context.Context, service types.NamespacedName) time.Duration {
	r.Gate.Wait(ctx)
	begin, within := time.Now(), firstWithin
	select {
	case <-r.heartbeat.Seen():
		within = passWithin
	default:
	}
	limited, cancel := context.WithTimeout(ctx, within)
	r.echoes.begins(service)
	outcome, err := r.reconcile(limited, service)
	cancel()
	took := time.Since(begin)
	if r.echoes.ends(service, outcome.Written) {
		r.queue.AddLimited(service)
	}
	if ctx.Err() != nil {
		return 0 // the work ends
	}
	r.heartbeat.Reconciled(service, outcome.Unpublished)
	switch {
	case apply.Stale(err):
		r.Observe(took, nil)
		r.queue.AddAfter(service, retryStale)
	case err != nil:
		r.Observe(took, err)
		if r.queue.NumRequeues(service) >= apply.FailuresToReport {
			if _, reported := r.failing.Swap(service, err); !reported {
				klog.FromContext(ctx).Error(err, "Cannot reconcile a service; retrying", "service", service)
			}
		}
		r.queue.AddRateLimited(service)
	default:
		r.Observe(took, nil)
		r.queue.Forget(service)
		r.failing.Delete(service)
	}
	return restAfter(took)
}

// askForIP is the delay after which an import without an IP is due again: an IP may be free.
const askForIP = 5 * time.Minute

// reconcile reconciles one service.
func (r *Reconciler) reconcile(ctx context.Context, service types.NamespacedName) (apply.Outcome, error) {
	if r.API.Version() == "" {
		return apply.Outcome{}, nil // the process restarts once the API is served
	}
	in := r.Gather(ctx, service)
	r.notePartial(service, in.Problems)
	result, refused := mergeWithin(r.ips, in.Observed, in.Contributions)
	outcome, err := r.Applier.ApplyService(ctx, in.Observed, r.queue.NumRequeues(service), result)
	if in.After > 0 {
		r.queue.AddAfter(service, in.After)
	}
	if refused {
		r.queue.AddAfter(service, askForIP)
	}
	return outcome, err
}
