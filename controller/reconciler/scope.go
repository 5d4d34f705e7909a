// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// Policy returns what the local cluster accepts of its members. The label of a namespace becomes a pattern.
func (g *Gatherer) Policy() scope.Policy {
	policy := scope.Policy{Others: g.Accept, Members: map[string]scope.Patterns{}}
	if !g.Accept.All() {
		policy.Others = g.Accept.With(g.Local.AcceptedNamespaces(g.Set))
	}
	for _, m := range g.Members.List() {
		if own := m.Accept(); own != nil {
			policy.Members[m.Cluster()] = *own
		}
	}
	return policy
}

// PolicyText returns the Policy as the heartbeat has it, empty if it accepts everything or does not fit. The latter is
// logged once. One goroutine calls it.
func (g *Gatherer) PolicyText(logger klog.Logger) string {
	text := g.Policy().Encode()
	omitted := len(text) > scope.MaxBytes
	if omitted && !g.omitted {
		logger.Error(nil, "What this cluster accepts of its members does not fit into its heartbeat, so that exporters do "+
			"not see what it refuses. Use fewer or shorter patterns in --accept and in the annotation of members' Secrets, "+
			"or label fewer namespaces", "bytes", len(text), "limit", scope.MaxBytes, "annotation", scope.AcceptAnnotation)
	}
	if g.omitted = omitted; omitted {
		return ""
	}
	return text
}

// ConditionReach is the type of the condition of a ServiceExport that tells which members it reaches. It exists only if
// clusters are chosen or refuse the export.
const ConditionReach = export.Domain + "/Reach"

// Reasons of ConditionReach.
const (
	ReasonChosenClusters = "ChosenClusters"
	ReasonRefused        = "Refused"
	ReasonNoCluster      = "NoCluster"
)

// reach returns the ConditionReach of an export of the local cluster, none if it is for all and no member is known to
// refuse it.
func (g *Gatherer) reach(view *export.View) []metav1.Condition {
	text := view.Slices[0].Clusters
	clusters, err := scope.ParseAbsolute(text)
	restricted := text != "" && err == nil
	var reached, refusing []string
	for _, m := range g.Members.List() {
		id := m.Cluster()
		is := scope.Cluster{ID: id, Properties: g.Tracker.Properties(id)}
		switch {
		case restricted && !clusters.Selects(is, is):
		case g.Tracker.Policy(id).Of(g.Cluster).Accepts(view.Service):
			reached = append(reached, id)
		default:
			refusing = append(refusing, id)
		}
	}
	switch {
	case len(refusing) > 0:
		message := "These members do not accept it: " + named(refusing) + "."
		if len(reached) > 0 {
			message += " It is for " + named(reached) + "."
		}
		return reach(metav1.ConditionFalse, ReasonRefused, message)
	case !restricted:
		return nil
	case len(reached) == 0:
		return reach(metav1.ConditionFalse, ReasonNoCluster, fmt.Sprintf("The cluster selector %q selects no member.", text))
	}
	return reach(metav1.ConditionTrue, ReasonChosenClusters, "The export is for "+named(reached)+".")
}

func reach(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{{Type: ConditionReach, Status: status, Reason: reason, Message: message}}
}

// named returns a list of sorted ids as text, of which a message has at most maxNamed.
func named(ids []string) string {
	const maxNamed = 20
	if len(ids) > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:maxNamed], ", "), len(ids)-maxNamed)
	}
	return strings.Join(ids, ", ")
}
