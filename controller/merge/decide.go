// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A decision is the merged export of all clusters. It depends only on the contributions, so that it is the same in
// every cluster. It shares immutable parts with the views.
type decision struct {
	// spec is that of the first export: its type, affinity, policies and exported metadata win. nil without exports.
	spec *export.Spec
	// union has the ports with their names on the import.
	union
	// families are the intersection of the exports' families, or those of the first export if it is empty. They have
	// the order of the first export.
	families []corev1.IPFamily
	// clusters are sorted.
	clusters []string
	// properties are all that exports can disagree on, in the order of the API. reason and message are those of the
	// condition Conflict, empty without conflicts.
	properties      []Property
	reason, message string
}

// decide applies the rules of KEP-1645, "Constraints and Conflict Resolution", to contributions in their precedence.
func decide(contributions []Contribution) (agreed decision) {
	if len(contributions) == 0 {
		return decision{}
	}
	views := make([]*export.View, 0, len(contributions))
	clusters := make([]string, 0, len(contributions))
	for _, contribution := range contributions {
		views = append(views, contribution.View)
		clusters = append(clusters, contribution.View.Cluster)
	}
	slices.Sort(clusters)
	agreed = decision{spec: views[0].Spec, union: unite(views), families: commonFamilies(views), clusters: clusters}
	agreed.properties = compare(views, agreed)
	agreed.reason, agreed.message = conflicts(views, byRank(contributions), agreed)
	return agreed
}

// byRank reports whether the first contribution is not the oldest export, so that its rank resolves the conflicts.
func byRank(contributions []Contribution) bool {
	first := contributions[0].View
	return slices.ContainsFunc(contributions, func(c Contribution) bool { return older(c.View, first) < 0 })
}

// older compares exports by age, then by cluster.
func older(a, b *export.View) int {
	return cmp.Or(a.Spec.Created.Compare(b.Spec.Created), cmp.Compare(a.Cluster, b.Cluster))
}

// commonFamilies is the intersection of the exports' families, in the order of
// the first, or the first's where that is empty.
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
