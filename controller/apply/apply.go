// SPDX-License-Identifier: Apache-2.0

// Package apply makes the local cluster match the result of a merge. It is the only writer of the controller, apart
// from Leases and Events.
//
// Each write compares the desired object with the existing one and is made only if they differ. If the existing object
// was stale, the write fails. If the API server's answer affects other objects (an IP, say), its event causes the next pass.
// Objects of other owners are neither changed nor deleted. The only decisions made here concern what the API server
// rejects: the condition Ready=False.
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// FailuresToReport is the number of consecutive failures after which a condition reports the failure. Earlier reports
// would make it flap: the API server frees the IP of a deleted Service only a moment later.
const FailuresToReport = 6

// An Applier writes to the local cluster. It is safe for concurrent use.
type Applier struct {
	// API writes ServiceImports and ServiceExports; Core writes Services and EndpointSlices.
	API  *local.API
	Core kubernetes.Interface
	// Recorder writes Events.
	Recorder record.EventRecorder
	// Clock gives the times of condition transitions.
	Clock clock.PassiveClock
}

// Stale reports whether a pass failed because a cached object was stale.
func Stale(err error) bool { return errors.Is(err, errStale) }

// A Version is a version of an object, whose resourceVersion is empty once it is deleted, which is never in Outcome.Written.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// VersionOf returns the version of an object.
func VersionOf(object metav1.Object) Version {
	return Version{object.GetUID(), object.GetResourceVersion()}
}

// An Outcome says what a pass wrote, and whether the service is published.
type Outcome struct {
	// Written has the versions that were stored as desired: the events that show them need no pass.
	Written sets.Set[Version]
	// Unpublished is the error that left published slices of the local cluster out of date, nil if they are current.
	Unpublished error
}

// ApplyService makes the cluster match the result of a merge.
//
// Writes follow their dependencies: the ServiceImport, which owns the other objects; the derived Service; the import's
// status; the slices; the Service with node ports; deletions; and the conditions of the ServiceExport, which report the
// outcome. A failed write only prevents writes that depend on it: a failed slice prevents deletions of slices of the same
// source cluster. All errors are returned.
//
// observed comes from the caches; its objects stay unchanged. failures is the number of consecutive failed reconciles of
// the service.
func (a *Applier) ApplyService(ctx context.Context, observed merge.Observed, failures int,
	result merge.Result,
) (Outcome, error) {
	p := &pass{Applier: a, observed: observed, failures: failures, result: result, outcome: Outcome{Written: sets.Set[Version]{}}}
	var importErr error
	if result.ServiceImport != nil && !terminating(observed.ServiceImport) {
		importErr = p.writeImportAndService(ctx)
	}
	late := p.writeSlices(ctx)
	nodePortsErr := p.writeService(ctx, "node-port Service", observed.NodePorts, result.NodePorts)
	err := errors.Join(importErr, nodePortsErr, late.err(), p.removeRest(ctx, late))
	if result.Foreign {
		_ = p.foreign(observed.ServiceImport)
	}
	err = errors.Join(err, p.writeExportStatus(ctx, errors.Join(late[p.observed.Cluster], nodePortsErr)))
	return p.outcome, err
}

// writeImportAndService writes the import, its derived Service, and the status of the import, unless the next pass will
// change that status. It reports a rejected Service after FailuresToReport failures.
func (p *pass) writeImportAndService(ctx context.Context) error {
	imported, err := p.writeImport(ctx)
	if err != nil || p.observed.ServiceImport == nil { // other objects need the UID of a new one
		return err
	}
	err = p.writeService(ctx, "derived Service", p.observed.DerivedService, p.result.DerivedService)
	if p.again || err != nil && p.failures < FailuresToReport {
		return err
	}
	return errors.Join(err, p.writeImportStatus(ctx, imported, err))
}

// A pass is one call of ApplyService.
type pass struct {
	*Applier
	observed merge.Observed
	failures int
	result   merge.Result
	outcome  Outcome
	// again is set if the event of a write causes the next pass, because other writes need its answer.
	again bool
}

// awaits notes that other writes need the answer to a write: the UID of a new import, or the IP of a Service.
func (p *pass) awaits(written metav1.Object) {
	p.again = true
	p.outcome.Written.Delete(VersionOf(written))
}

func terminating(serviceImport *v1beta1.ServiceImport) bool {
	return serviceImport != nil && serviceImport.DeletionTimestamp != nil
}

func (p *pass) namespace() string { return p.observed.Service.Namespace }

// writeImport writes metadata and spec of the import, and returns it. The IPs may still be missing. A new or adopted import
// needs another pass.
func (p *pass) writeImport(ctx context.Context) (*v1beta1.ServiceImport, error) {
	client := p.API.ServiceImports(p.namespace())
	before := p.observed.ServiceImport
	written, err := write(ctx, p, client, client.Update, before, p.result.ServiceImport, equalImport)
	if err != nil {
		return nil, fmt.Errorf("ServiceImport %s: %w", p.observed.Service, err)
	}
	if written != before && (before == nil || !export.IsManaged(before)) {
		p.awaits(written)
	}
	return written, nil
}

// writeImportStatus writes the status of the import. It reports a rejected derived Service.
func (p *pass) writeImportStatus(ctx context.Context, before *v1beta1.ServiceImport, serviceErr error) error {
	desired := before.DeepCopy()
	desired.Status = *p.result.ServiceImport.Status.DeepCopy()
	refuse(&desired.Status.Conditions, serviceErr)
	desired.Status.Conditions = p.conditions(before.Status.Conditions, desired.Status.Conditions, before.Generation)
	imports := p.API.ServiceImports(p.namespace())
	if _, err := write(ctx, p, imports, imports.UpdateStatus, before, desired, equalImportStatus); err != nil {
		return fmt.Errorf("status of ServiceImport %s: %w", p.observed.Service, err)
	}
	return nil
}

// writeService writes a Service, if one is desired. The import or the exposed slices need its IP or its ports, which the API
// server allocates. It deletes a Service that cannot be updated: the event of the deletion causes the next pass.
func (p *pass) writeService(ctx context.Context, kind string, existing, desired *corev1.Service) (err error) {
	client, written := p.Core.CoreV1().Services(p.namespace()), existing
	switch {
	case desired == nil:
		return nil
	case existing != nil && merge.NeedsRecreation(existing, desired):
		err = remove(ctx, client, existing)
		p.again = err == nil
	default:
		written, err = write(ctx, p, client, client.Update, existing, desired, equalService)
	}
	if err != nil {
		return fmt.Errorf("%s %s/%s of %s: %w", kind, p.namespace(), desired.Name, p.observed.Service, err)
	}
	if written != existing && (existing == nil || export.IsExposed(desired)) {
		p.awaits(written)
	}
	return nil
}

// writeExportStatus writes the conditions of the local ServiceExport. It is not ready while the local cluster's slices or
// its Service with node ports cannot be written.
func (p *pass) writeExportStatus(ctx context.Context, slicesErr error) error {
	before := p.observed.ServiceExport
	if before == nil || len(p.result.ExportConditions) == 0 || Stale(slicesErr) {
		return nil // no export, conditions of another implementation, or the next pass decides
	}
	desired, decided := before.DeepCopy(), slices.Clone(p.result.ExportConditions)
	fail(&decided, slicesErr)
	desired.Status.Conditions = p.conditions(before.Status.Conditions, decided, before.Generation)
	exports := p.API.ServiceExports(p.namespace())
	if _, err := write(ctx, p, exports, exports.UpdateStatus, before, desired, equalExportStatus); err != nil {
		return fmt.Errorf("status of ServiceExport %s: %w", p.observed.Service, err)
	}
	return nil
}
