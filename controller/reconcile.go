// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/mcsapi"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/vouch"
)

// InvalidDenied is the reason of the condition Valid of an export from a namespace that takes no part.
const InvalidDenied = "NamespaceDenied"

// A reconciler brings services to what all clusters export, one at a time for
// each worker.
type reconciler struct {
	cluster string
	// namespace is Options.Namespace.
	namespace string
	denied    []string
	families  []corev1.IPFamily
	metrics   *metrics
	clock     clock.PassiveClock
	// serveHandMade is Options.HandMadeImports.
	serveHandMade bool
	// prefer is Options.Prefer.
	prefer string

	// inputs are the caches of the own cluster, those of the MCS API too.
	inputs  informer.Group
	local   *local
	api     *mcsapi.Follower
	members *member.Set
	// sentinel says which of them are alive.
	sentinel *sentinel
	// shares are what members may have of the imports.
	shares  *shares
	applier *apply.Applier
	// remembered outlives the copies of slices that somebody else deletes.
	remembered remembered
	queue      *queue

	// record is how the slices of this cluster fare, for the heartbeat.
	record   *vouch.Record
	recorder record.EventRecorder

	credentialsChanged <-chan struct{}
	stop               func()
}

// work takes services from the queue until it is shut down.
func (r *reconciler) work(ctx context.Context) {
	for {
		service, shutdown := r.queue.Get()
		if shutdown {
			return
		}
		if ctx.Err() != nil {
			r.queue.Done(service) // the queue is emptied before its shutdown is told
			continue
		}
		reading := r.inputs.Wait(ctx)
		begin := r.clock.Now()
		r.record.Begins()
		err := r.reconcile(ctx, service, reading)
		if ctx.Err() != nil {
			r.record.Ends(service, nil) // the term ends
		} else {
			r.record.Ends(service, unpublished(err))
		}
		switch {
		case apply.Changed(err):
			r.metrics.reconciled(r.clock.Since(begin), nil)
		default:
			r.metrics.reconciled(r.clock.Since(begin), err)
		}
		switch {
		case err == nil:
			r.queue.Forget(service)
		case ctx.Err() == nil:
			if r.queue.NumRequeues(service) == apply.FailuresToTell {
				klog.FromContext(ctx).Error(err, "Cannot bring a service up to date; trying again", "service", service)
			}
			r.queue.AddRateLimited(service)
		}
		r.queue.Done(service)
	}
}

// unpublished returns why slices of the local cluster are not as they should
// be, nil if they are.
func unpublished(err error) error {
	if unpublished := (*apply.PublishError)(nil); errors.As(err, &unpublished) {
		return unpublished
	}
	return nil
}

// reconcile is the whole flow for one service. What is not read of the own
// cluster again after an outage was waited for before.
func (r *reconciler) reconcile(ctx context.Context, service types.NamespacedName, reading informer.Reading) error {
	access, lost := r.api.Access()
	namespace := r.local.namespace(service.Namespace)
	if namespace == nil || terminating(namespace) {
		r.metrics.problems.set(service, nil)
		r.remembered.retain(service, nil, nil)
		r.shares.release(service)
		r.applier.Forget(service)
		return nil // what was there goes with it; when it is back, its services are named
	}
	if access == nil {
		// All services are named once the API is served.
		r.applier.Forget(service)
		return r.applier.Clean(ctx, r.cluster, r.local.derivedFor(service), r.local.madeFor(service), lost.Exports, lost.Imports)
	}
	if r.unreadable(access, service) {
		return nil
	}
	r.shares.load(r.cluster, access.Imports)
	existing, contributions := r.gather(access, service)
	if !r.inputs.Holds(reading) {
		// Some of it may be of before the outage, and some of after it.
		return r.reconcile(ctx, service, r.inputs.Wait(ctx))
	}
	existing.Failures = r.queue.NumRequeues(service)
	outcome, err := r.applier.ApplyService(ctx, access, existing, r.mergeWithin(existing.Observed, contributions))
	switch {
	case outcome.Again && err == nil:
		r.enqueue(service)
	case outcome.After > 0:
		r.queue.AddAfter(service, outcome.After)
	}
	return err
}

// catchUpAfter is after how long a service is reconciled again if the caches do
// not show what was written of it.
const catchUpAfter = 10 * time.Second

// catchUp enqueues the services that the caches are behind of.
func (r *reconciler) catchUp(ctx context.Context, clock clock.WithTicker) {
	ticker := clock.NewTicker(catchUpAfter)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		for _, service := range r.applier.Behind(catchUpAfter) {
			r.enqueue(service)
		}
	}
}

// gather looks at everything that concerns a service.
func (r *reconciler) gather(access *mcsapi.Access, service types.NamespacedName) (apply.Existing, []merge.Contribution) {
	shown := r.local.shown()
	shown.ServiceImports, shown.ServiceExports = access.Shown()
	derived := types.NamespacedName{Namespace: service.Namespace, Name: export.DerivedServiceName(service)}
	existing := apply.Existing{
		Observed: merge.Observed{
			Cluster:        r.cluster,
			Service:        service,
			APIVersion:     access.APIVersion(),
			IPFamilies:     r.families,
			Nodes:          r.local.zones(),
			Prefer:         r.prefer,
			ServiceImport:  access.ServiceImport(service),
			ServiceExport:  access.ServiceExport(service),
			DerivedService: r.local.service(derived),
			Unsupported:    r.applier.Unsupported(),
			Namesakes: slices.DeleteFunc(access.ImportsDerivedAs(derived), func(serviceImport *v1beta1.ServiceImport) bool {
				return serviceImport.Name == service.Name
			}),
		},
		EndpointSlices: r.local.madeFor(service),
	}
	r.applier.CatchUp(&existing, shown)
	observed := &existing.Observed
	if serviceImport := observed.ServiceImport; serviceImport != nil && !export.IsManaged(serviceImport) {
		observed.ServeHandMade = r.serveHandMade
		observed.HandMadeSlices = r.local.handMadeFor(service)
	}
	if observed.Denied = denied(r.denied, service.Namespace); observed.Denied {
		if observed.ServiceExport != nil {
			observed.Invalid = &export.Invalid{
				Reason:  InvalidDenied,
				Message: fmt.Sprintf("The namespace %s takes no part in the cluster set: it is on the controller's list of denied namespaces.", service.Namespace),
			}
		}
		r.metrics.problems.set(service, nil)
		return existing, nil
	}

	var contributions []merge.Contribution
	problems := map[string][]export.Problem{}
	if observed.ServiceExport != nil {
		view, own, invalid := export.FromService(r.cluster, observed.ServiceExport, r.local.service(service), r.local.slicesOf(service))
		observed.Invalid, observed.Problems = invalid, own
		problems[r.cluster] = own
		if view != nil && (!view.Absent() || keepsImport(r.cluster, existing)) {
			home := r.local.namespace(r.namespace)
			contributions = append(contributions, merge.Contribution{View: view, Demote: drained(home), Rank: rankOf(home)})
		}
	}
	var clusters []string
	for _, m := range r.members.Members() {
		clusters = append(clusters, m.Cluster())
		copies := slices.DeleteFunc(slices.Clone(existing.EndpointSlices), func(slice *discoveryv1.EndpointSlice) bool {
			return slice.Labels[export.LabelSourceCluster] != m.Cluster()
		})
		view, found, verdict := viewOf(m, service, copies, &r.remembered, r.sentinel.verdict)
		if verdict.State == liveness.Gone {
			r.remembered.forget(service, m.Cluster())
			continue
		}
		problems[m.Cluster()] = found
		if view != nil {
			contributions = append(contributions, merge.Contribution{View: view, Demote: verdict.Demote, Rank: m.Rank()})
		}
	}
	r.remembered.retain(service, clusters, existing.EndpointSlices)
	r.metrics.problems.set(service, problems)
	existing.Exported = slices.ContainsFunc(contributions, func(c merge.Contribution) bool { return !c.View.Absent() })
	return existing, contributions
}

// keepsImport reports whether an export whose Service does not exist may have an
// import to keep: here, or, if its cluster published slices of it before,
// elsewhere. A ServiceExport is often seen a moment before its Service. To
// publish nothing then spares every other cluster two changes.
func keepsImport(cluster string, existing apply.Existing) bool {
	return existing.Observed.ServiceImport != nil || slices.ContainsFunc(existing.EndpointSlices, func(slice *discoveryv1.EndpointSlice) bool {
		return slice.Labels[export.LabelSourceCluster] == cluster
	})
}

// publisher is what gather reads of a member.Member.
type publisher interface {
	Cluster() string
	CIDRs() []netip.Prefix
	Synced() bool
	Slices(types.NamespacedName) []*discoveryv1.EndpointSlice
	Withheld(types.NamespacedName) bool
}

// viewOf is what a member says of a service, as last seen, and what is judged
// of the member. Until it was seen, where what was believed is to be kept, and
// while limits withhold what it publishes, the copies of its slices in this cluster speak for it, also those that
// somebody deleted since. A slice that cannot be understood stays as the copies
// have it.
func viewOf(m publisher, service types.NamespacedName, copies []*discoveryv1.EndpointSlice, memory *remembered, judge func(string) liveness.Verdict) (*export.View, []export.Problem, liveness.Verdict) {
	source := export.Source{Cluster: m.Cluster(), CIDRs: m.CIDRs()}
	// A list is judged before it can be read. So what was read first is covered
	// by the verdict that is read next, and never the other way round.
	withheld := m.Withheld(service)
	synced, published := m.Synced(), m.Slices(service)
	verdict := judge(m.Cluster())
	if verdict.Keep || !synced || withheld || m.Withheld(service) {
		copies = memory.of(service, source.Cluster, copies, func(string) bool { return true })
		view, problems := export.FromSlices(source, service, copies, nil)
		return view, problems, verdict
	}
	view, problems := export.FromSlices(source, service, published, nil)
	if len(problems) == 0 {
		memory.forget(service, source.Cluster)
		return view, problems, verdict
	}
	names := map[string]bool{}
	for _, slice := range published {
		// A slice may be refused for its address type, which a copy was made with.
		for _, addressType := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			names[export.SliceName(source.Cluster, service, slice.Name, addressType)] = true
		}
	}
	if copies = memory.of(service, source.Cluster, copies, func(name string) bool { return names[name] }); len(copies) == 0 {
		return view, problems, verdict
	}
	previous, _ := export.FromSlices(source, service, copies, nil)
	view, problems = export.FromSlices(source, service, published, previous)
	return view, problems, verdict
}
