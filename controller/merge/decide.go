// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A Decision is the merged export of all clusters. Except for its Placement, it depends only on the contributions, so it
// is the same in every cluster. It shares immutable parts with the views.
type Decision struct {
	// Precedence are the contributions whose Service exists, in their precedence.
	Precedence []Contribution
	// Properties are all properties on which exports can disagree, in the order of their reasons. Conflict is the message of
	// the condition Conflict, and reason its reason; empty without conflicts.
	Properties       []Property
	Conflict, reason string
	// Placement is the Placement of the import in this cluster.
	Placement Placement

	// spec is the spec of the first export, whose type, affinity, policies and exported metadata win. It is nil without exports.
	spec *export.Spec
	// union has the ports with their names on the import.
	union
	// families are the intersection of the exports' families or, if it is empty, the families of the first export, in the
	// order of the first export.
	families []corev1.IPFamily
}

// resolve applies the rules of KEP-1645, "Constraints and Conflict Resolution", to contributions in their precedence.
func resolve(contributions []Contribution) (agreed Decision) {
	if len(contributions) == 0 {
		return Decision{}
	}
	views := make([]*export.View, 0, len(contributions))
	for _, contribution := range contributions {
		views = append(views, contribution.View)
	}
	agreed = Decision{
		Precedence: contributions, spec: views[0].Spec, union: unite(views), families: commonFamilies(views),
	}
	agreed.Properties, agreed.reason, agreed.Conflict = compare(views, agreed)
	return agreed
}

// commonFamilies returns the intersection of the exports' families, in the order of the first export, or the families of
// the first export if it is empty.
func commonFamilies(views []*export.View) []corev1.IPFamily {
	first := views[0].Spec.IPFamilies
	common := slices.DeleteFunc(slices.Clone(first), func(family corev1.IPFamily) bool {
		return slices.ContainsFunc(views, func(view *export.View) bool { return !slices.Contains(view.Spec.IPFamilies, family) })
	})
	if len(common) == 0 {
		return slices.Clone(first)
	}
	return common
}
