// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// lateClusters maps each source cluster that has an out-of-date slice to the error, which is nil if slices wait for their
// import. Slices of these clusters are not deleted: a service is exported as long as it has a slice, and endpoints that
// moved to a new slice may still be only in the old one.
type lateClusters map[string]error

func (l lateClusters) add(cluster string, err error) { l[cluster] = errors.Join(l[cluster], err) }

func (l lateClusters) err() error { return errors.Join(slices.Collect(maps.Values(l))...) }

// writeSlices writes the desired slices. Without an import of this controller nothing can own the copies of members'
// slices, so their clusters are late. While the import terminates, existing copies are still updated.
func (p *pass) writeSlices(ctx context.Context) lateClusters {
	owner := p.observed.ServiceImport // as the merge saw it
	haveImport := owner != nil && export.IsManaged(owner) && !terminating(owner)
	known := make(map[string]*discoveryv1.EndpointSlice, len(p.observed.EndpointSlices))
	for _, slice := range p.observed.EndpointSlices {
		known[slice.Name] = slice
	}
	late := lateClusters{}
	client := p.Core.DiscoveryV1().EndpointSlices(p.namespace())
	for _, desired := range p.result.EndpointSlices {
		cluster := desired.Labels[export.LabelSourceCluster]
		waits := !haveImport && cluster != p.observed.Cluster
		if waits {
			late.add(cluster, nil)
			if !terminating(owner) || known[desired.Name] == nil {
				continue
			}
		}
		before := known[desired.Name]
		if before != nil && before.DeletionTimestamp != nil && cluster == p.observed.Cluster {
			late.add(cluster, fmt.Errorf("EndpointSlice %s/%s is being deleted, so that other clusters ignore it: remove its finalizers",
				before.Namespace, before.Name))
			continue
		}
		update := desired
		if before != nil {
			update = withOthers(before, desired)
		}
		written, err := write(ctx, p, client, client.Update, before, update, equalSlice)
		switch {
		case errors.Is(err, errStale) && written != nil &&
			(!export.IsManaged(written) || export.ServiceOf(written) != p.observed.Service):
			foreign := p.foreign(written)
			late.add("", foreign) // no event tells when it is gone, and it blocks no deletion
			if cluster == p.observed.Cluster {
				fail(&p.result.ExportConditions, foreign)
			}
		case errors.Is(err, errStale) && written == nil && waits:
			// The garbage collector deleted it with the import.
		case err != nil:
			late.add(cluster, fmt.Errorf("EndpointSlice %s/%s: %w", p.namespace(), desired.Name, err))
		}
	}
	p.outcome.Unpublished = late[p.observed.Cluster]
	return late
}

// ownSliceLabels are the labels of slices that this controller sets or removes.
var ownSliceLabels = []string{
	export.LabelService, export.LabelSourceCluster, export.LabelSliceManagedBy, export.LabelKubernetesService,
	export.LabelHeadless, export.LabelExposed,
}

// withOthers returns the desired slice as an update of the existing one, with the labels, annotations and finalizers of
// other writers. The result shares parts with both, which stay unchanged.
func withOthers(existing, desired *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	update := *desired
	update.UID, update.ResourceVersion, update.Finalizers = existing.UID, existing.ResourceVersion, existing.Finalizers
	update.Labels = maps.Clone(existing.Labels)
	maps.DeleteFunc(update.Labels, func(key, _ string) bool { return slices.Contains(ownSliceLabels, key) })
	maps.Copy(update.Labels, desired.Labels)
	update.Annotations = make(map[string]string, len(existing.Annotations))
	for key, value := range existing.Annotations {
		if key != export.AnnotationTriggerTime && key != export.AnnotationSRV &&
			!strings.HasPrefix(key, export.AnnotationSnapshotPrefix) {
			update.Annotations[key] = value
		}
	}
	maps.Copy(update.Annotations, desired.Annotations)
	return &update
}

// removeRest deletes objects of this controller that are no longer desired, except slices of late clusters.
func (p *pass) removeRest(ctx context.Context, late lateClusters) error {
	wanted := make(map[string]bool, len(p.result.EndpointSlices))
	for _, slice := range p.result.EndpointSlices {
		wanted[slice.Name] = true
	}
	var errs []error
	for _, slice := range p.observed.EndpointSlices {
		cluster := slice.Labels[export.LabelSourceCluster]
		if _, stays := late[cluster]; stays || wanted[slice.Name] {
			continue
		}
		err := remove(ctx, p.Core.DiscoveryV1().EndpointSlices(p.namespace()), slice)
		if errs = append(errs, err); err != nil && cluster == p.observed.Cluster {
			p.outcome.Unpublished = err
		}
	}
	if service := p.observed.DerivedService; service != nil && p.result.DerivedService == nil &&
		export.IsManaged(service) && export.ServiceOf(service) == p.observed.Service {
		errs = append(errs, remove(ctx, p.Core.CoreV1().Services(p.namespace()), service))
	}
	if service := p.observed.NodePorts; service != nil && p.result.NodePorts == nil && export.IsManaged(service) {
		errs = append(errs, remove(ctx, p.Core.CoreV1().Services(p.namespace()), service))
	}
	if serviceImport := p.observed.ServiceImport; serviceImport != nil && p.result.ServiceImport == nil &&
		export.IsManaged(serviceImport) {
		errs = append(errs, remove(ctx, p.API.ServiceImports(p.namespace()), serviceImport))
	}
	return errors.Join(errs...)
}
