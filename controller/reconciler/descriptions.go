// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// propertiesChanged handles a change of the properties of the local cluster.
func (r *Reconciler) propertiesChanged() {
	r.setClusterSet()
	r.EnqueueAll()
}

func (r *Reconciler) setClusterSet() {
	r.Tracker.SetClusterSet(memberstate.ClusterSet{Name: r.Set, Listed: scope.Sets(r.Properties.All())})
}

// DescriptionChanged implements memberstate.Handler.
func (r *Reconciler) DescriptionChanged(change memberstate.Redescription) {
	policy := !change.Before.Of(r.Cluster).Equal(change.After.Of(r.Cluster))
	if change.Properties {
		r.enqueueCluster(change.Cluster)
	}
	if policy || change.Properties {
		r.enqueueExports(func(each *v1beta1.ServiceExport) bool { return policy || dependsOnMembers(each) })
	}
}

// dependsOnMembers reports whether an export depends on which members there are, and on their properties.
func dependsOnMembers(each *v1beta1.ServiceExport) bool {
	return each.Annotations[export.AnnotationClusters] != "" ||
		meta.FindStatusCondition(each.Status.Conditions, ConditionReach) != nil
}

// MemberChanged implements member.Handler.
func (r *Reconciler) MemberChanged(cluster string) {
	var members []string
	for _, m := range r.Members.List() {
		members = append(members, m.Cluster())
	}
	r.shares.SetMembers(members)
	r.enqueueCluster(cluster)
	r.enqueueExports(dependsOnMembers)
}
