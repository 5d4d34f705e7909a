// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// ConditionReach is the type of a ServiceExport's condition that lists the members it is for. It exists only if clusters
// are chosen.
const ConditionReach = export.Domain + "/Reach"

// Reasons of ConditionReach.
const (
	// ReasonChosenClusters (True): the export is for the listed members.
	ReasonChosenClusters = "ChosenClusters"
	// ReasonNoCluster: the annotation clusters selects no member.
	ReasonNoCluster = "NoCluster"
)

// reach returns the ConditionReach of an export of the local cluster, none if it is for all clusters.
func (r *Reconciler) reach(view *export.View) []metav1.Condition {
	text := view.Slices[0].Clusters
	clusters, err := scope.ParseAbsolute(text)
	if text == "" || err != nil {
		return nil
	}
	var reached []string
	for _, m := range r.Members.List() {
		is := scope.Cluster{ID: m.Cluster(), Properties: r.Tracker.Properties(m.Cluster())}
		if clusters.Selects(is, is) {
			reached = append(reached, is.ID)
		}
	}
	condition := metav1.Condition{
		Type: ConditionReach, Status: metav1.ConditionTrue, Reason: ReasonChosenClusters,
		Message: "The export is for " + export.Listed(reached) + ".",
	}
	if len(reached) == 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, ReasonNoCluster
		condition.Message = fmt.Sprintf("The cluster selector %q selects no member.", text)
	}
	return []metav1.Condition{condition}
}
