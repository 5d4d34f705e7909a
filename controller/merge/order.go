// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/selector"
	"github.com/clusterset-dns/clusterset-dns/controller/traffic"
)

// A level is the place of endpoints in the order of use. They are demoted where a lower level has ready ones. The bits
// are, from the highest: silent or drained, saturated, the tier, and surplus.
type level int

const (
	// surplus are the endpoints that a weight leaves out.
	surplus level = 1
	// tier is the distance between two tiers, and hintedTier is after all others.
	tier       level = 2
	hintedTier       = tier * (traffic.MaxTiers + 1)
	saturated  level = 1 << 5
	silent     level = 1 << 6
)

// An order is what decides the levels of an import's contributions in this cluster. The zero value knows silent,
// drained and saturated clusters only.
type order struct {
	tiers traffic.Tiers
	// hinted is set if hints put this cluster first. Then it precedes no cluster by its tier: kube-proxy itself turns to
	// the others when no endpoint of this cluster is ready, and these must be ready.
	hinted bool
	border traffic.Border
	// weights are nil without any.
	weights traffic.Weights
	local   selector.Cluster
	// headless is set for a headless import.
	headless bool
}

// orderOf returns the order for an import. For headless imports that prefer the local cluster alone, the DNS server
// does so, with the others as the next priority.
func orderOf(observed Observed, imported *v1beta1.ServiceImport) order {
	tiers, _ := tiersOf(observed, imported) // the condition tells of the error
	if imported.Spec.Type == v1beta1.Headless && tiers.OnlyLocal() {
		tiers = traffic.Tiers{}
	}
	border, _ := traffic.ParseBorder(imported.Annotations[export.AnnotationWithin])
	weights, _ := traffic.ParseWeights(imported.Annotations[export.AnnotationWeights])
	return order{
		tiers: tiers, hinted: hinted(observed, imported), border: border, weights: weights,
		local:    selector.Cluster{ID: observed.Cluster, Properties: observed.Properties},
		headless: imported.Spec.Type == v1beta1.Headless,
	}
}

// of returns the place of a contribution.
func (o order) of(contribution Contribution) part {
	cluster := selector.Cluster{ID: contribution.View.Cluster, Properties: contribution.Properties}
	own := cluster.ID == o.local.ID
	if own {
		cluster = o.local
	}
	p := part{
		spec: contribution.View.Spec, demote: contribution.Demote, outside: !o.border.Admits(cluster, o.local),
		level: tier * level(o.tiers.Of(cluster, o.local)),
	}
	p.counts = p.level
	if own && o.hinted {
		p.counts = hintedTier
	}
	if p.spec.Saturated {
		p.level, p.counts = p.level|saturated, p.counts|saturated
	}
	if contribution.Demote {
		p.level, p.counts = p.level|silent, p.counts|silent
	}
	return p
}
