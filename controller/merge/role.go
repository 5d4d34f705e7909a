// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A Role is the place of a cluster's endpoints in the order of use of an import, apart from silence and drains.
type Role struct {
	// Outside reports whether the cluster is outside of the border.
	Outside bool
	// Rules are those that decided, such as "tier 2", the strongest first. There are none without settings.
	Rules []string
}

// Roles returns the role of each exporting cluster, by id, as Merge of the same input decides. The import is that of
// the observed state; without one there are no roles.
func Roles(observed Observed, contributions []Contribution) map[string]Role {
	if observed.ServiceImport == nil || foreign(observed) {
		return nil
	}
	contributions, _ = divide(contributions)
	order := orderOf(observed, observed.ServiceImport)
	parts := make(map[string]part, len(contributions))
	for _, contribution := range contributions {
		parts[contribution.View.Cluster] = order.of(contribution)
	}
	cuts := weigh(observed, contributions, order, parts)
	roles := make(map[string]Role, len(parts))
	for cluster, part := range parts {
		role := Role{Outside: part.outside}
		if part.outside {
			role.Rules = append(role.Rules, "outside of the border "+
				observed.ServiceImport.Annotations[export.AnnotationWithin])
		}
		if part.level&saturated != 0 {
			role.Rules = append(role.Rules, "saturated")
		}
		if order.tiers.Any() {
			text := fmt.Sprintf("tier %d", 1+(part.level&^(saturated|silent))/tier)
			if cluster == observed.Cluster && order.hinted {
				text += " by hints"
			}
			role.Rules = append(role.Rules, text)
		}
		if text := cuts.describe(order.weights, cluster); text != "" {
			role.Rules = append(role.Rules, text)
		}
		roles[cluster] = role
	}
	return roles
}

// describe returns what weights mean for a cluster, empty for nothing.
func (c *cuts) describe(weights map[string]int, cluster string) string {
	if c == nil {
		return ""
	}
	weight, weighted := weights[cluster]
	var used []string
	for _, each := range c.weighings {
		if ready, counts := each.ready[cluster]; counts && (weighted || each.used[cluster] < ready) {
			used = append(used, fmt.Sprintf("%d of %d ready %s endpoints", each.used[cluster], ready, each.addressType))
		}
	}
	text := strings.Join(used, ", ")
	switch {
	case weighted && text == "":
		return fmt.Sprintf("weight %d %%", weight)
	case weighted:
		return fmt.Sprintf("weight %d %%: %s", weight, text)
	case text != "":
		return "no weight: " + text
	}
	return ""
}
