// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// propertiesChanged handles a change of the properties of the local cluster.
func (r *Reconciler) propertiesChanged() {
	r.setClusterSet()
	r.EnqueueAll()
}

func (r *Reconciler) setClusterSet() {
	r.Tracker.SetClusterSet(r.Properties.All()[scope.ClusterSetProperty])
}

// PropertiesChanged implements memberstate.Handler.
func (r *Reconciler) PropertiesChanged(cluster string) {
	r.enqueueCluster(cluster)
	r.enqueueExports(dependsOnMembers)
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
