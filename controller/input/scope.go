// SPDX-License-Identifier: Apache-2.0

package input

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/selector"
)

// refuses returns the rule by which a contribution of a member is not accepted, empty if it is. accepted is whether the
// label of the namespace accepts it.
func (g *Gatherer) refuses(m *member.Member, service types.NamespacedName, accepted bool) string {
	return Refuses(g.Accept, m.Accept(), service, accepted)
}

// Refuses returns the rule by which a contribution of a member with patterns of its own, nil for none, is not accepted,
// empty if it is. others are the patterns for members without, and accepted is whether the label of the namespace
// accepts it.
func Refuses(others accept.Patterns, own *accept.Patterns, service types.NamespacedName, accepted bool) string {
	switch {
	case own != nil && own.Accepts(service), own == nil && (accepted || others.Accepts(service)):
		return ""
	case own != nil:
		return fmt.Sprintf("annotation %s of its Secret has %q", accept.Annotation, own)
	}
	return fmt.Sprintf("--accept has %q, and its namespace lacks the label %s=true", others, accept.Label)
}

// Policy returns what the local cluster accepts of its members. The label of a namespace becomes a pattern.
func (g *Gatherer) Policy() accept.Policy {
	policy := accept.Policy{Others: g.Accept, Members: map[string]accept.Patterns{}}
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

// A PolicyPublisher encodes the Policy for the heartbeat. One goroutine uses it.
type PolicyPublisher struct {
	// Policy returns the current Policy.
	Policy func() accept.Policy
	// omitted is set while the Policy does not fit, as reported.
	omitted bool
}

// Text returns the Policy as the heartbeat has it, empty if it accepts everything or does not fit. The latter is logged
// once.
func (p *PolicyPublisher) Text(logger klog.Logger) string {
	text := p.Policy().Encode()
	omitted := len(text) > accept.MaxBytes
	switch {
	case omitted && !p.omitted:
		logger.Error(nil, "What this cluster accepts of its members does not fit into its heartbeat, so that exporters do "+
			"not see what it refuses. Use fewer or shorter patterns in --accept and in the annotation of members' Secrets, "+
			"or label fewer namespaces", "bytes", len(text), "limit", accept.MaxBytes, "annotation", accept.Annotation)
	case !omitted && p.omitted:
		logger.Info("The heartbeat has again what this cluster accepts of its members")
	}
	if p.omitted = omitted; omitted {
		return ""
	}
	return text
}

// maxNamed bounds the clusters that a message names.
const maxNamed = 20

// reach returns which members an export of the local cluster reaches, nil if it is for all and none is known to refuse
// it.
func (g *Gatherer) reach(view *export.View) *merge.Reach {
	text := view.Slices[0].Clusters
	clusters, err := selector.ParseAbsolute(text)
	restricted := text != "" && err == nil
	if !restricted && !g.Tracker.AnyPolicy() {
		return nil
	}
	var reached, refusing []string
	for _, m := range g.Members.List() {
		id := m.Cluster()
		is := selector.Cluster{ID: id, Properties: g.Tracker.Properties(id)}
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
		return &merge.Reach{Status: metav1.ConditionFalse, Reason: merge.ReasonRefused, Message: message}
	case !restricted:
		return nil
	case len(reached) == 0:
		return &merge.Reach{
			Status: metav1.ConditionFalse, Reason: merge.ReasonNoCluster,
			Message: fmt.Sprintf("The cluster selector %q selects no member.", text),
		}
	}
	return &merge.Reach{
		Status: metav1.ConditionTrue, Reason: merge.ReasonChosenClusters,
		Message: "The export is for " + named(reached) + ".",
	}
}

// named returns a list of sorted ids as text.
func named(ids []string) string {
	if len(ids) > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:maxNamed], ", "), len(ids)-maxNamed)
	}
	return strings.Join(slices.Clone(ids), ", ")
}
