// SPDX-License-Identifier: Apache-2.0

// Package placement decides in which order the endpoints of clusters are used, by the settings of exports and of the
// administrator: near endpoints first, tiers, allowed clusters, weights, overload. It implements merge.Placement.
//
// The package is pure. docs/use/export-services.md describes the settings.
package placement

import (
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// Here has the state of the local cluster on which placements depend, in addition to imports.
type Here struct {
	// Cluster is the local cluster.
	Cluster scope.Cluster
	// Properties returns the last known ClusterProperties of another cluster, nil if they were never known.
	Properties func(cluster string) map[string]string
	// Prefer is the list of tiers for imports without a preference.
	Prefer string
	// Nodes is the part of the local cluster's Nodes that hints depend on.
	Nodes Nodes
}

// The bits of a level are, from the highest: demoted (the cluster is unreachable or drained), overloaded, the tier, and surplus.
const (
	// surplus is for endpoints that a weight leaves out.
	surplus merge.Level = 1
	// tier is the distance between two tiers, and hintedTier is after all others.
	tier       merge.Level = 2
	hintedTier             = tier * (maxTiers + 1)
	overloaded merge.Level = 1 << 5
	demoted    merge.Level = 1 << 6
)

// A placement is the placement of one import. It is not safe for concurrent use.
type placement struct {
	Here
	imported *v1beta1.ServiceImport
	headless bool
	tiers    Tiers
	allowed  *scope.Selector
	weights  Weights
	// tiersErr, allowedErr and weightsErr are why a setting of the import is invalid.
	tiersErr, allowedErr, weightsErr error
	// hinted is set if hints put this cluster first. Then its tier demotes no other cluster: kube-proxy itself fails over
	// to the others when no endpoint of this cluster is ready, and these must be ready.
	hinted bool
	hints  *hints
	places map[string]place // by cluster
	// weighings has the weighing of each address family, if the import has weights and endpoints are ready.
	weighings map[discoveryv1.AddressType]weighing
}

// A place is the place of a cluster in the order. All its endpoints have it, except those that a weight leaves out.
type place struct {
	outside bool // of the allowed clusters
	// use and cover are the results of Level for the endpoints of the cluster. They differ only for the local cluster
	// with hints.
	use, cover merge.Level
	// surplus has the addresses of the ready endpoints that weights leave out.
	surplus map[string]bool
}

// Of is a merge.Placing. Invalid settings of the import have no effect, except that invalid allowed clusters allow only the
// local cluster; conditions report them.
func (h Here) Of(imported *v1beta1.ServiceImport, contributions []merge.Contribution) merge.Placement {
	p := &placement{
		Here: h, imported: imported, headless: imported.Spec.Type == v1beta1.Headless, places: map[string]place{},
		weighings: map[discoveryv1.AddressType]weighing{},
	}
	distribution := ptr.Deref(imported.Spec.TrafficDistribution, "")
	if prefer := imported.Annotations[export.AnnotationPrefer]; prefer != "" || distribution != "" {
		p.tiers, p.tiersErr = ParseTiers(prefer)
	} else {
		p.tiers, _ = ParseTiers(h.Prefer) // the administrator's list has no effect if it is invalid
	}
	p.hinted = !p.headless && p.tiers.localFirst() && h.Nodes.CanPreferCluster()
	if p.headless && p.tiers.localFirst() && len(p.tiers.tiers) == 1 {
		p.tiers = Tiers{} // the DNS server puts this cluster first, and the others next
	}
	p.weights, p.weightsErr = parseWeights(imported.Annotations[export.AnnotationWeights])
	p.allowed, p.allowedErr = parseAllowed(imported.Annotations)
	for _, contribution := range contributions {
		view, cluster := contribution.View, h.Cluster
		if view.Cluster != h.Cluster.ID {
			cluster = scope.Cluster{ID: view.Cluster, Properties: h.Properties(view.Cluster)}
		}
		p.places[view.Cluster] = p.place(cluster, contribution)
	}
	if !p.headless { // kube-proxy does not see slices of headless imports
		p.hints = newHints(distribution, p.hinted, h.Nodes)
	}
	if p.weights != nil {
		p.weigh(discoveryv1.AddressTypeIPv4, contributions)
		p.weigh(discoveryv1.AddressTypeIPv6, contributions)
	}
	return p
}

func (p *placement) place(cluster scope.Cluster, contribution merge.Contribution) place {
	own := cluster.ID == p.Cluster.ID
	use := tier * merge.Level(p.tiers.Of(cluster, p.Cluster))
	cover, last := use, merge.Level(0)
	if own && p.hinted {
		cover = hintedTier
	}
	if contribution.View.Spec.Overloaded {
		last |= overloaded
	}
	if contribution.Demote {
		last |= demoted
	}
	outside := !own && p.allowed != nil && !p.allowed.Selects(cluster, p.Cluster)
	return place{outside: outside, use: use | last, cover: cover | last, surplus: map[string]bool{}}
}

// Level implements merge.Placement.
func (p *placement) Level(from merge.Contribution, endpoint *discoveryv1.Endpoint) (use, cover merge.Level) {
	place := p.places[from.View.Cluster]
	switch {
	case place.outside:
		return merge.Unused, merge.Unused
	case place.surplus[endpoint.Addresses[0]]:
		return place.use | surplus, place.cover | surplus
	}
	return place.use, place.cover
}

// Decorate implements merge.Placement.
func (p *placement) Decorate(object *discoveryv1.EndpointSlice, from merge.Contribution, slice *export.Slice, demoted []int) {
	if text := p.srv(from, slice, demoted); text != "" {
		object.Annotations[export.AnnotationSRV] = text
	}
	object.Endpoints = p.hints.of(from.View.Cluster == p.Cluster.ID, object.Endpoints)
}

// Hinted implements merge.Placement.
func (p *placement) Hinted() bool { return p.hinted }

// Rules implements merge.Placement.
func (p *placement) Rules(cluster string) (rules []string) {
	place := p.places[cluster]
	if place.outside {
		rules = append(rules, "outside of the allowed clusters "+p.imported.Annotations[export.AnnotationAllowedClusters])
	}
	if place.use&overloaded != 0 {
		rules = append(rules, "overloaded")
	}
	if p.tiers.Any() {
		text := fmt.Sprintf("tier %d", 1+(place.use&^(overloaded|demoted))/tier)
		if cluster == p.Cluster.ID && p.hinted {
			text += " by hints"
		}
		rules = append(rules, text)
	}
	if weight, weighted := p.weights[cluster]; weighted {
		rules = append(rules, fmt.Sprintf("weight %d %%", weight))
	} else if len(place.surplus) > 0 {
		rules = append(rules, "no weight")
	}
	return rules
}
