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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

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

// An Applier writes to the own cluster. It is safe for concurrent use for
// different services.
type Applier struct {
	// Core writes Services and EndpointSlices.
	Core kubernetes.Interface
	// Recorder writes Events.
	Recorder record.EventRecorder
	// Clock dates transitions of conditions.
	Clock clock.PassiveClock
	// Written is told of each EndpointSlice after it was created or updated;
	// before is nil for a new one.
	Written func(before, after *discoveryv1.EndpointSlice)
	// Removing is told of each EndpointSlice that nobody wants any more before
	// it is deleted.
	Removing func(*discoveryv1.EndpointSlice)
	// Keeping is told of each that exists and is wanted, in case it was to be
	// removed before and could not be.
	Keeping func(*discoveryv1.EndpointSlice)
	// Repeated is called for each write that another writer had undone, with the
	// kind of the object; nil for nothing.
	Repeated func(kind string)

	told        told
	fights      fights
	unsupported unsupported
	recent      recent
}

// ApplyService makes the cluster what decide wants, given what is observed. decide is
// called again whenever a write changes what is observed, so that a cluster IP
// reaches the import in the pass in which it was allocated.
//
// The order is that of dependence: the ServiceImport, which owns the rest; the
// derived Service, which comes first where a headless import gains an IP; the
// import's IPs and status; the slices; what is to go; last the ServiceExport's
// conditions, which tell of the rest. A write that fails does not keep back
// those that do not need it: of slices it keeps back only the removals of the
// same source cluster. All errors are returned.
//
// A write that another writer undoes over and over is held back for a time that
// grows, up to five minutes. retry is after how long it may be made, zero if
// none is held back. For a slice of the local cluster that is a PublishError.
func (a *Applier) ApplyService(ctx context.Context, access *mcsapi.Access, existing Existing, decide func(merge.Observed) merge.Result) (retry time.Duration, err error) {
	p := &pass{
		Applier:  a,
		access:   access,
		existing: existing,
		observed: existing.Observed,
		decide:   decide,
	}
	p.redecide()

	var importErr, serviceErr error
	ending := terminating(p.observed.ServiceImport)
	if !ending {
		passing := func() bool { return serviceErr != nil && existing.Failures < FailuresToTell }
		if p.gainsIP() {
			serviceErr = p.writeDerivedService(ctx)
		}
		if !passing() {
			importErr = p.writeImport(ctx)
		}
		if importErr == nil && serviceErr == nil {
			serviceErr = p.writeDerivedService(ctx)
		}
		if importErr == nil && p.result.ServiceImport != nil && !passing() {
			importErr = p.finishImport(ctx, serviceErr)
		}
	}
	behind := p.writeSlices(ctx)
	err = errors.Join(importErr, serviceErr, behind.err(), p.labelHandMade(ctx), p.removeRest(ctx, behind))
	p.tellForeign()
	err = errors.Join(err, p.writeExportStatus(ctx, behind[p.observed.Cluster]))
	return p.after, err
}

// A pass is one ApplyService. observed and result follow what is written.
type pass struct {
	*Applier
	access   *mcsapi.Access
	existing Existing
	observed merge.Observed
	decide   func(merge.Observed) merge.Result
	result   merge.Result
	// strangers are the objects that stand where ours would.
	strangers []metav1.Object
	// after is the shortest time for which a write is held back.
	after time.Duration
}

func terminating(serviceImport *v1beta1.ServiceImport) bool {
	return serviceImport != nil && serviceImport.DeletionTimestamp != nil
}

func (p *pass) namespace() string { return p.observed.Service.Namespace }

// noting is what is remembered of the service, so that more can be.
func (p *pass) noting() *answers { return p.recent.noting(p.observed.Service, p.Clock.Now()) }

// seeImport takes in what a write showed of the import.
func (p *pass) seeImport(serviceImport *v1beta1.ServiceImport) {
	if serviceImport != p.observed.ServiceImport {
		p.noting().serviceImport = strip(serviceImport)
		p.observed.ServiceImport = serviceImport
		p.redecide()
	}
}

// seeDerivedService takes in what a write showed of the derived Service.
func (p *pass) seeDerivedService(service *corev1.Service) {
	if service != p.observed.DerivedService {
		p.noting().derivedService = strip(service)
		p.observed.DerivedService = service
		p.redecide()
	}
}

// gainsIP tells whether an import that is headless is to have an IP. It is
// answered as it is until the derived Service has one, because with the other
// type and no IP it would be answered with nothing.
func (p *pass) gainsIP() bool {
	before := p.observed.ServiceImport
	return before != nil && before.Spec.Type == v1beta1.Headless && p.result.DerivedService != nil
}

// writeImport writes metadata and spec of the import. The IPs may still be
// missing.
func (p *pass) writeImport(ctx context.Context) error {
	if p.result.ServiceImport == nil {
		return nil
	}
	client := p.access.ServiceImports(p.namespace())
	guard := guarding(p, v1beta1.ServiceImportKindName, p.observed.Service.Name, func(existing, desired *v1beta1.ServiceImport) any {
		return changesOf(cmp.Or(existing, &v1beta1.ServiceImport{}), desired, desired.Spec)
	})
	written, err := write(ctx, guard, client, p.observed.Service.Name, p.observed.ServiceImport,
		func(existing *v1beta1.ServiceImport) (*v1beta1.ServiceImport, error) {
			p.seeImport(existing)
			if p.result.ServiceImport == nil {
				return nil, nil
			}
			return p.access.KeepImport(p.result.ServiceImport)
		}, equalImport)
	if err != nil {
		return fmt.Errorf("ServiceImport %s: %w", p.observed.Service, err)
	}
	p.seeImport(written)
	return nil
}

// finishImport brings what the derived Service has to the import: first the
// IPs, then the status, in which a refusal is told.
func (p *pass) finishImport(ctx context.Context, serviceErr error) error {
	if err := p.writeImport(ctx); err != nil {
		return err
	}
	imports := p.access.ServiceImports(p.namespace())
	client := statusClient[*v1beta1.ServiceImport]{client: imports, updateStatus: imports.UpdateStatus}
	before := p.observed.ServiceImport
	written, err := write(ctx, importStatusGuard(p, p.observed.Service.Name), client, p.observed.Service.Name, p.observed.ServiceImport,
		func(existing *v1beta1.ServiceImport) (*v1beta1.ServiceImport, error) {
			p.seeImport(existing)
			if existing == nil || p.result.ServiceImport == nil {
				return nil, nil // deleted meanwhile: the watch will tell
			}
			desired := p.result.ServiceImport.DeepCopy()
			desired.Status.Conditions = withRefusal(desired.Status.Conditions, existing, serviceErr)
			p.date(desired.Status.Conditions)
			return p.access.KeepImport(desired)
		}, equalImportStatus)
	if err != nil {
		return fmt.Errorf("status of ServiceImport %s: %w", p.observed.Service, err)
	}
	if written != nil && before != nil {
		p.tellConditions(written, before.Status.Conditions, written.Status.Conditions)
	}
	p.seeImport(written)
	return nil
}

// writeDerivedService writes the Service behind the import.
func (p *pass) writeDerivedService(ctx context.Context) error {
	if p.result.DerivedService == nil {
		return nil
	}
	name := p.result.DerivedService.Name
	client := p.Core.CoreV1().Services(p.namespace())
	var asked string
	desire := func(existing *corev1.Service) (*corev1.Service, error) {
		p.seeDerivedService(existing)
		desired := p.result.DerivedService
		if asked = ""; desired != nil {
			asked = ptr.Deref(desired.Spec.TrafficDistribution, "")
		}
		if existing == nil || desired == nil || !merge.NeedsRecreation(existing, desired) {
			return desired, nil
		}
		if err := remove(ctx, client, existing); err != nil {
			return nil, err
		}
		// The next attempt finds it gone and creates the desired one.
		return desired, nil
	}
	guard := guarding(p, "Service", name, func(existing, desired *corev1.Service) any {
		return changesOf(cmp.Or(existing, &corev1.Service{}), desired, desired.Spec)
	})
	written, err := write(ctx, guard, client, name, p.observed.DerivedService, desire, equalService)
	for p.refusesDistribution(ctx, asked, written, err) {
		written, err = write(ctx, guard, client, name, written, desire, equalService)
	}
	if err != nil {
		return fmt.Errorf("derived Service %s/%s of ServiceImport %s: %w", p.namespace(), name, p.observed.Service, err)
	}
	p.seeDerivedService(written)
	return nil
}

// labelHandMade gives slices that a person made the label that puts them behind
// the derived Service. Nothing else of them is changed.
func (p *pass) labelHandMade(ctx context.Context) error {
	var errs []error
	for _, labelled := range p.result.HandMadeSlices {
		seen := true
		guard := guarding(p, "EndpointSlice", labelled.Name, func(_, desired *discoveryv1.EndpointSlice) any { return desired.Labels })
		_, err := write(ctx, guard, p.Core.DiscoveryV1().EndpointSlices(p.namespace()), labelled.Name, labelled,
			func(existing *discoveryv1.EndpointSlice) (*discoveryv1.EndpointSlice, error) {
				if !seen {
					return nil, nil // it changed meanwhile: the watch will tell
				}
				seen = false
				return labelled, nil
			}, func(_, _ *discoveryv1.EndpointSlice) bool { return false })
		if err != nil {
			errs = append(errs, fmt.Errorf("EndpointSlice %s/%s: %w", p.namespace(), labelled.Name, err))
		}
	}
	return errors.Join(errs...)
}

// writeExportStatus writes the conditions of the own ServiceExport. It is not
// ready while the own slices cannot be written.
func (p *pass) writeExportStatus(ctx context.Context, slicesErr error) error {
	seen := p.observed.ServiceExport
	if seen == nil {
		return nil
	}
	exports := p.access.ServiceExports(p.namespace())
	client := statusClient[*v1beta1.ServiceExport]{client: exports, updateStatus: exports.UpdateStatus}
	var before *v1beta1.ServiceExport
	written, err := write(ctx, exportStatusGuard(p, seen.Name), client, seen.Name, seen,
		func(existing *v1beta1.ServiceExport) (*v1beta1.ServiceExport, error) {
			before = existing
			if existing == nil || existing.UID != seen.UID {
				return nil, nil // deleted meanwhile: the watch will tell
			}
			if existing != p.observed.ServiceExport {
				p.noting().serviceExport = strip(existing)
				p.observed.ServiceExport = existing
				p.redecide()
			}
			desired := existing.DeepCopy()
			desired.Status.Conditions = mergeConditions(existing.Status.Conditions, withFailure(p.result.ExportConditions, existing, slicesErr))
			p.date(desired.Status.Conditions)
			return p.access.KeepExport(desired)
		}, equalExportStatus)
	if err != nil {
		return fmt.Errorf("status of ServiceExport %s: %w", p.observed.Service, err)
	}
	if written != before && written != nil && before != nil {
		p.noting().serviceExport = strip(written)
		p.tellConditions(written, before.Status.Conditions, written.Status.Conditions)
	}
	return nil
}
