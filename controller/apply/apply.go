// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/mcsapi"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// Existing is what the own cluster has of one service, as the caches show it.
// Nothing of it is changed.
type Existing struct {
	// Exported tells that some cluster exports the service.
	Exported bool
	// Failures is how often in a row the service could not be brought up to
	// date just before.
	Failures int
	// Observed is what a merge looks at. Its objects may be stale: see CatchUp.
	Observed merge.Observed
	// EndpointSlices are those of the service that carry the label of this
	// controller.
	EndpointSlices []*discoveryv1.EndpointSlice
}

// FailuresToTell is after how many failures in a row a failure is told to
// people. The first ones pass: the API server frees the IP of a Service that was
// deleted a moment later, and a condition that tells of it would flap.
const FailuresToTell = 6

// Metrics observe writes.
type Metrics interface {
	// Written is called after an EndpointSlice was created or updated; before is nil
	// for a new one.
	Written(before, after *discoveryv1.EndpointSlice)
	// Repeated is called for each write that another writer had undone, with the kind
	// of the object.
	Repeated(kind string)
}

// An Applier writes to the local cluster. It is safe for concurrent use for
// different services.
type Applier struct {
	// Core writes Services and EndpointSlices.
	Core kubernetes.Interface
	// Recorder writes Events.
	Recorder record.EventRecorder
	// Clock dates transitions of conditions.
	Clock clock.PassiveClock
	// Metrics observes writes.
	Metrics Metrics

	told        told
	fights      fights
	unsupported unsupported
	recent      recent
}

// Changed reports whether a pass failed because an object was not what the caches
// showed. What was read of it counts in the next pass.
func Changed(err error) bool { return errors.Is(err, errChanged) }

// An Outcome says when a service is to be reconciled again.
type Outcome struct {
	// Again is set if what the API server made of a write decides about more: the UID
	// of a new import, the IP of a Service, or a field that it does not know.
	Again bool
	// After is for how long a write is held back that another writer undoes over
	// and over, at most five minutes; zero if none is. For a slice of the local
	// cluster the error is a PublishError.
	After time.Duration
}

// ApplyService writes what the result of a merge has and the cluster has not.
//
// The order is that of dependence: the ServiceImport, which owns the rest; the
// derived Service, which comes first if a headless import gains an IP; the
// import's status; the slices; what is to go; last the ServiceExport's conditions,
// which report the rest. A write that fails does not keep back those that do not
// need it: of slices it keeps back only the removals of the same source cluster.
// All errors are returned.
func (a *Applier) ApplyService(ctx context.Context, access *mcsapi.Access, existing Existing,
	result merge.Result,
) (Outcome, error) {
	p := &pass{Applier: a, access: access, existing: existing, observed: existing.Observed, result: result}
	var importErr, serviceErr error
	if !terminating(p.observed.ServiceImport) {
		importErr, serviceErr = p.writeImportAndService(ctx)
	}
	behind := p.writeSlices(ctx)
	err := errors.Join(importErr, serviceErr, behind.err(), p.labelHandMade(ctx), p.removeRest(ctx, behind))
	p.tellForeign()
	err = errors.Join(err, p.writeExportStatus(ctx, behind[p.observed.Cluster]))
	return p.outcome, err
}

// writeImportAndService writes the import, its derived Service, and the status of
// the import, unless the next pass has more to say of it. A Service that is refused
// is not reported before it was refused several times.
func (p *pass) writeImportAndService(ctx context.Context) (importErr, serviceErr error) {
	if p.gainsIP() {
		serviceErr = p.writeDerivedService(ctx)
		if serviceErr == nil || p.existing.Failures < FailuresToTell {
			return nil, serviceErr
		}
	}
	before := p.observed.ServiceImport
	if importErr = p.writeImport(ctx); importErr != nil || p.result.ServiceImport == nil {
		return importErr, serviceErr
	}
	if before == nil {
		return nil, serviceErr // the rest needs its UID
	}
	if serviceErr == nil {
		serviceErr = p.writeDerivedService(ctx)
	}
	if p.unfinished || p.outcome.Again || serviceErr != nil && p.existing.Failures < FailuresToTell {
		return nil, serviceErr
	}
	return p.writeImportStatus(ctx, serviceErr), serviceErr
}

// A pass is one ApplyService. The ServiceImport in observed follows what is
// written.
type pass struct {
	*Applier
	access   *mcsapi.Access
	existing Existing
	observed merge.Observed
	result   merge.Result
	// strangers are the objects that stand where ours would.
	strangers []metav1.Object
	// unfinished is set if the status of the import has to wait for an event.
	unfinished bool
	outcome    Outcome
}

func terminating(serviceImport *v1beta1.ServiceImport) bool {
	return serviceImport != nil && serviceImport.DeletionTimestamp != nil
}

func (p *pass) namespace() string { return p.observed.Service.Namespace }

// noting is what is remembered of the service, so that more can be.
func (p *pass) noting() *answers { return p.recent.noting(p.observed.Service, p.Clock.Now()) }

// gainsIP reports whether an import that is headless is to have an IP, which its
// derived Service does not have yet. Until then the import stays as it is, because
// DNS has no answer for the other type without an IP.
func (p *pass) gainsIP() bool {
	before, after := p.observed.ServiceImport, p.result.ServiceImport
	return before != nil && before.Spec.Type == v1beta1.Headless && p.result.DerivedService != nil &&
		len(after.Spec.IPs) == 0
}

// writeImport writes metadata and spec of the import. The IPs may still be
// missing.
func (p *pass) writeImport(ctx context.Context) error {
	if p.result.ServiceImport == nil {
		return nil
	}
	client := p.access.ServiceImports(p.namespace())
	guard := guarding(p, v1beta1.ServiceImportKindName, p.observed.Service.Name,
		func(existing, desired *v1beta1.ServiceImport) any {
			return changesOf(cmp.Or(existing, &v1beta1.ServiceImport{}), desired, desired.Spec)
		})
	guard.object.schema = p.access.Schema()
	desired := p.unsupported.supported(p.result.ServiceImport, p.access.Schema())
	written, err := write(ctx, guard, client, p.observed.Service.Name, p.observed.ServiceImport, desired, equalImport)
	p.seeImport(written)
	if p.refusesSecondIP(ctx, desired, err) {
		p.outcome.Again = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("ServiceImport %s: %w", p.observed.Service, err)
	}
	return nil
}

// seeImport notes what a write showed of the import. One that is new, or that
// another writer made, is brought to its end step by step.
func (p *pass) seeImport(serviceImport *v1beta1.ServiceImport) {
	before := p.observed.ServiceImport
	if serviceImport == before {
		return
	}
	p.noting().serviceImport = strip(serviceImport)
	p.observed.ServiceImport = serviceImport
	if before == nil || !export.IsManaged(before) {
		p.outcome.Again = true
	}
}

// writeImportStatus writes the status of the import, which reports a refusal of
// the derived Service.
func (p *pass) writeImportStatus(ctx context.Context, serviceErr error) error {
	before := p.observed.ServiceImport
	desired := before.DeepCopy()
	desired.Status = *p.result.ServiceImport.Status.DeepCopy()
	desired.Status.Conditions = withRefusal(ofGeneration(desired.Status.Conditions, before.Generation), before,
		serviceErr)
	p.date(desired.Status.Conditions)
	imports := p.access.ServiceImports(p.namespace())
	client := statusClient[*v1beta1.ServiceImport]{client: imports, updateStatus: imports.UpdateStatus}
	guard := importStatusGuard(p, p.observed.Service.Name)
	guard.object.schema = p.access.Schema()
	written, err := write(ctx, guard, client, p.observed.Service.Name, before, desired, equalImportStatus)
	p.seeImport(written)
	if err != nil {
		return fmt.Errorf("status of ServiceImport %s: %w", p.observed.Service, err)
	}
	p.tellConditions(written, before.Status.Conditions, written.Status.Conditions)
	return nil
}

// ofGeneration dates the conditions that a merge decided: the import has that
// generation since its spec was written.
func ofGeneration(conditions []metav1.Condition, generation int64) []metav1.Condition {
	for i := range conditions {
		if kind := conditions[i].Type; kind == string(v1beta1.ServiceImportConditionReady) ||
			kind == merge.ConditionPreferCluster {
			conditions[i].ObservedGeneration = generation
		}
	}
	return conditions
}

// writeDerivedService writes the Service behind the import. One that cannot be
// updated is deleted; the event of that brings the next pass.
func (p *pass) writeDerivedService(ctx context.Context) error {
	existing, desired := p.observed.DerivedService, p.result.DerivedService
	if desired == nil {
		return nil
	}
	client, failed := p.Core.CoreV1().Services(p.namespace()), func(err error) error {
		return fmt.Errorf("derived Service %s/%s of ServiceImport %s: %w", p.namespace(), desired.Name,
			p.observed.Service, err)
	}
	if existing != nil && merge.NeedsRecreation(existing, desired) {
		if err := remove(ctx, client, existing); err != nil {
			return failed(err)
		}
		p.noting().derivedService = nil
		p.unfinished = true
		return nil
	}
	guard := guarding(p, "Service", desired.Name, func(existing, desired *corev1.Service) any {
		return changesOf(cmp.Or(existing, &corev1.Service{}), desired, desired.Spec)
	})
	written, err := write(ctx, guard, client, desired.Name, existing, desired, equalService)
	if written != existing {
		p.noting().derivedService = strip(written)
	}
	if p.refusesDistribution(ctx, written, err) {
		p.outcome.Again = true
		return nil
	}
	if err != nil {
		return failed(err)
	}
	if existing == nil && written != nil {
		p.outcome.Again = true // the import is ready if it has an IP
	}
	return nil
}

// labelHandMade gives slices that a person made the label that puts them behind
// the derived Service. Nothing else of them is changed.
func (p *pass) labelHandMade(ctx context.Context) error {
	var errs []error
	for _, labelled := range p.result.HandMadeSlices {
		guard := guarding(p, "EndpointSlice", labelled.Name,
			func(_, desired *discoveryv1.EndpointSlice) any { return desired.Labels })
		_, err := write(ctx, guard, p.Core.DiscoveryV1().EndpointSlices(p.namespace()), labelled.Name, labelled,
			labelled,
			func(_, _ *discoveryv1.EndpointSlice) bool { return false })
		if err != nil && !errors.Is(err, errChanged) { // the watch will tell
			errs = append(errs, fmt.Errorf("EndpointSlice %s/%s: %w", p.namespace(), labelled.Name, err))
		}
	}
	return errors.Join(errs...)
}

// writeExportStatus writes the conditions of the own ServiceExport. It is not
// ready while the own slices cannot be written.
func (p *pass) writeExportStatus(ctx context.Context, slicesErr error) error {
	before := p.observed.ServiceExport
	if before == nil || Changed(slicesErr) {
		return nil // there is none, or the next pass knows
	}
	desired := before.DeepCopy()
	desired.Status.Conditions = mergeConditions(before.Status.Conditions, withFailure(p.result.ExportConditions, before,
		slicesErr))
	p.date(desired.Status.Conditions)
	exports := p.access.ServiceExports(p.namespace())
	client := statusClient[*v1beta1.ServiceExport]{client: exports, updateStatus: exports.UpdateStatus}
	guard := exportStatusGuard(p, before.Name)
	guard.object.schema = p.access.Schema()
	written, err := write(ctx, guard, client, before.Name, before, desired, equalExportStatus)
	if errors.Is(err, errChanged) && (written == nil || written.UID != before.UID) {
		return nil // deleted meanwhile: the watch will tell
	}
	if written != before {
		p.noting().serviceExport = strip(written)
	}
	if err != nil {
		return fmt.Errorf("status of ServiceExport %s: %w", p.observed.Service, err)
	}
	p.tellConditions(written, before.Status.Conditions, written.Status.Conditions)
	return nil
}
