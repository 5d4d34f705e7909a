// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// behind are the source clusters some slice of which is not as it should be, and
// the error, nil where slices wait for their import. What is there of them stays: a service is exported as long as it has a
// slice, and endpoints that moved to a new slice are still in the old one. One
// cluster that is behind is no reason to keep what others withdrew.
type behind map[string]error

func (b behind) add(cluster string, err error) { b[cluster] = errors.Join(b[cluster], err) }

func (b behind) err() error {
	var errs []error
	for _, cluster := range slices.Sorted(maps.Keys(b)) {
		errs = append(errs, b[cluster])
	}
	return errors.Join(errs...)
}

// writeSlices writes the slices that should exist. Without an import of ours
// there is nothing to own the copies of other clusters' slices: their clusters
// are behind. While the import ends, the copies that it owns follow their source.
func (p *pass) writeSlices(ctx context.Context) behind {
	owner := p.observed.ServiceImport
	haveImport := owner != nil && export.IsManaged(owner) && !terminating(owner)
	known := make(map[string]*discoveryv1.EndpointSlice, len(p.existing.EndpointSlices))
	for _, slice := range p.existing.EndpointSlices {
		known[slice.Name] = slice
	}
	late := behind{}
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
		var before *discoveryv1.EndpointSlice
		foreign := false
		written, err := write(ctx, client, desired.Name, known[desired.Name],
			func(existing *discoveryv1.EndpointSlice) (*discoveryv1.EndpointSlice, error) {
				before = existing
				if existing == nil && waits {
					return nil, nil // collected with the import meanwhile
				}
				if existing == nil {
					desired.UID, desired.ResourceVersion = "", ""
					return desired, nil
				}
				if foreign = !export.IsManaged(existing); foreign {
					return nil, nil
				}
				desired.UID, desired.ResourceVersion = existing.UID, existing.ResourceVersion
				return desired, nil
			}, equalSlice)
		if err == nil && written != known[desired.Name] {
			p.noting().noteSlice(desired.Name, strip(written))
		}
		switch {
		case err != nil:
			late.add(cluster, fmt.Errorf("EndpointSlice %s/%s: %w", p.namespace(), desired.Name, err))
		case foreign:
			p.foreign(written)
		case written != before:
			p.dropsNodeHints(ctx, desired, written)
			p.Written(before, written)
		}
	}
	return late
}

// removeRest deletes what the controller made and nobody wants any more, apart
// from the slices of clusters that are behind.
func (p *pass) removeRest(ctx context.Context, behind behind) error {
	wanted := make(map[string]bool, len(p.result.EndpointSlices))
	for _, slice := range p.result.EndpointSlices {
		wanted[slice.Name] = true
	}
	var errs []error
	// note remembers that something is gone, unless it may not be.
	note := func(err error, gone func(*answers)) {
		if err == nil {
			gone(p.noting())
		}
		errs = append(errs, err)
	}
	for _, slice := range p.existing.EndpointSlices {
		if wanted[slice.Name] {
			p.Keeping(slice)
			continue
		}
		if _, stays := behind[slice.Labels[export.LabelSourceCluster]]; stays {
			continue
		}
		p.Removing(slice)
		note(remove(ctx, p.Core.DiscoveryV1().EndpointSlices(p.namespace()), slice), func(a *answers) { a.noteSlice(slice.Name, nil) })
	}
	if service := p.observed.DerivedService; service != nil && p.result.DerivedService == nil && export.IsManaged(service) {
		note(remove(ctx, p.Core.CoreV1().Services(p.namespace()), service), func(a *answers) { a.derivedService = nil })
	}
	if serviceImport := p.observed.ServiceImport; serviceImport != nil && p.result.ServiceImport == nil && export.IsManaged(serviceImport) {
		note(remove(ctx, p.access.ServiceImports(p.namespace()), serviceImport), func(a *answers) { a.serviceImport = nil })
	}
	return errors.Join(errs...)
}
