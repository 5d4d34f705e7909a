// SPDX-License-Identifier: Apache-2.0

package statusz

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
	"github.com/clusterset-dns/clusterset-dns/controller/reconciler"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// A Subject is the input of an explanation.
type Subject struct {
	reconciler.Input
	// Members are the members that publish slices of the service.
	Members []Publisher
	// Unread are the other members whose exports are not all known, each with the reason.
	Unread []string
	// Elsewhere is why the namespace of the service takes no part in the cluster set, empty if it does. Settle is the fix.
	Elsewhere, Settle string
}

// A Publisher is a member that publishes slices of a service.
type Publisher struct {
	Cluster string
	// For is the selector of the clusters that its export is for, empty if it selects the local cluster.
	For     string
	Verdict liveness.Verdict
	// Findings say why the member is not fresh, and whether it is drained.
	Findings state.Findings
	// Unread is the reason why its exports are not all known, nil if there is none.
	Unread error
	// Accept is the command to accept the service from it, and Confine the command to accept addresses in one more range.
	Accept, Confine string
}

// Explain explains how a service is imported in the local cluster.
func Explain(s Subject) state.Explanation {
	observed := s.Observed
	result, decision := merge.Decide(observed, s.Contributions)
	e := &explanation{Subject: s, result: result, decision: decision, Explanation: state.Explanation{
		Version: state.Version, Service: observed.Service.String(), Cluster: observed.Cluster,
		Exports: []state.Export{}, Properties: []state.Property{}, Conditions: []metav1.Condition{},
		Endpoints: []state.Endpoint{}, DNS: []string{}, Problems: state.Findings{},
	}}
	e.result.EndpointSlices = slices.DeleteFunc(e.result.EndpointSlices, export.IsExposed)
	if observed.ServiceImport != nil {
		e.imported(observed.ServiceImport)
	}
	for _, property := range decision.Properties {
		out := state.Property{Field: property.Field, Value: property.Text(decision.Spec()), From: decision.Precedence[0].View.Cluster}
		for _, dissent := range property.Dissent {
			out.Dissent = append(out.Dissent, dissent.Cluster+": "+cmp.Or(property.Text(dissent.Spec), "none"))
		}
		e.Properties = append(e.Properties, out)
	}
	for _, from := range decision.Precedence {
		e.export(from)
	}
	e.wait()
	e.rest()
	e.count()
	e.findings()
	e.summarize()
	return e.Explanation
}

type explanation struct {
	Subject
	state.Explanation
	result   merge.Result
	decision merge.Decision
	// hints are those of the endpoints, until these are sorted.
	hints []*discoveryv1.EndpointHints
}

func (e *explanation) headless() bool {
	return e.Import != nil && e.Import.Type == string(v1beta1.Headless)
}

// publisher returns a member, or the local cluster.
func (e *explanation) publisher(cluster string) Publisher {
	if at := slices.IndexFunc(e.Members, func(p Publisher) bool { return p.Cluster == cluster }); at >= 0 {
		return e.Members[at]
	}
	return Publisher{Cluster: cluster}
}

func (e *explanation) imported(serviceImport *v1beta1.ServiceImport) {
	found := importOf(serviceImport)
	e.Import = &found
	for _, kind := range placement.Kinds {
		if told := meta.FindStatusCondition(serviceImport.Status.Conditions, kind); told != nil {
			e.Conditions = append(e.Conditions, *told)
		}
	}
	if !e.headless() {
		e.DNS = append(e.DNS, serviceImport.Spec.IPs...)
		return
	}
	for _, slice := range e.result.EndpointSlices {
		for _, endpoint := range slice.Endpoints {
			if export.IsReady(&endpoint) {
				e.DNS = append(e.DNS, endpoint.Addresses[0])
			}
		}
	}
	slices.SortFunc(e.DNS, compareAddresses)
	e.DNS = slices.Compact(e.DNS)
}

// export adds the export of a cluster that contributes, and its endpoints.
func (e *explanation) export(from merge.Contribution) {
	cluster, who := from.View.Cluster, e.publisher(from.View.Cluster)
	rules := e.decision.Placement.Rules(cluster)
	out := state.Export{
		Cluster: cluster, State: who.Verdict.State.String(), Since: from.View.Spec.Created, Rules: rules,
	}
	if first := from.View.Slices[0]; first.Exposed != "" {
		out.Rules = append(slices.Clone(rules), fmt.Sprintf("by %s, because it is in network %q", first.Exposed, first.Network))
	}
	if from.Demote && who.Verdict.State == liveness.Fresh {
		out.State += ", drained"
	}
	if from.Demote && cluster == e.Cluster {
		drainsItself(&e.Problems, cluster)
	}
	e.Exports = append(e.Exports, out)
	if e.Import == nil {
		return // the controller has not written it
	}
	ready := map[string]bool{} // by address, in its own cluster
	for i := range from.View.Slices {
		for _, endpoint := range from.View.Slices[i].Endpoints {
			ready[endpoint.Addresses[0]] = export.IsReady(&endpoint)
		}
	}
	for _, slice := range e.result.EndpointSlices {
		if slice.Labels[export.LabelSourceCluster] != cluster {
			continue
		}
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			how, why := e.use(from, who, slice, endpoint, ready[endpoint.Addresses[0]], rules)
			e.Endpoints = append(e.Endpoints, state.Endpoint{
				Address: endpoint.Addresses[0], Cluster: cluster, State: how, Reason: why, Zone: ptr.Deref(endpoint.Zone, ""),
			})
			e.hints = append(e.hints, endpoint.Hints)
		}
	}
}

// use returns the state of an endpoint, and why.
func (e *explanation) use(from merge.Contribution, who Publisher, slice *discoveryv1.EndpointSlice,
	endpoint *discoveryv1.Endpoint, wasReady bool, rules []string,
) (how, why string) {
	demoted := ""
	switch {
	case who.Verdict.Reason == liveness.PodsUnreachable:
		demoted = "the pods of " + who.Cluster + " are not reached (rule PodsUnreachable)"
	case who.Verdict.State != liveness.Fresh:
		demoted = who.Cluster + " is " + who.Verdict.State.String()
	case from.Demote:
		demoted = who.Cluster + " is drained"
	}
	ready := export.IsReady(endpoint)
	level, _ := e.decision.Placement.Level(from, endpoint)
	switch {
	case level == merge.Unused:
		return state.Outside, strings.Join(rules, ", ")
	case ready && !e.headless() && len(slice.Ports) == 0:
		return state.Unused, "the Service in " + who.Cluster + " has none of the imported ports"
	case ready && demoted != "":
		return state.Used, demoted + ", but no other cluster has a ready endpoint"
	case ready:
		return state.Used, "ready"
	case wasReady && demoted != "":
		return state.Demoted, demoted + ", and another cluster has a ready endpoint"
	case wasReady:
		return state.Demoted, strings.Join(rules, ", ") + ", and endpoints that come before are ready"
	case ptr.Deref(endpoint.Conditions.Terminating, false):
		return state.NotReady, "terminating"
	}
	return state.NotReady, "not ready in " + who.Cluster
}

// rest adds the exports of clusters that contribute nothing, and problems for those with a fix, except for refused ones.
func (e *explanation) rest() {
	observed := e.Observed
	place := func(cluster string) int {
		return slices.IndexFunc(e.Exports, func(x state.Export) bool { return x.Cluster == cluster })
	}
	if observed.Invalid != nil {
		e.Exports = append(e.Exports, state.Export{Cluster: e.Cluster, State: "not exported: " + observed.Invalid.Reason})
	}
	for _, m := range e.Members {
		text := "not imported"
		switch {
		case place(m.Cluster) >= 0:
			continue
		case e.Elsewhere != "":
			text = "not imported: " + e.Elsewhere
		case e.Refused[m.Cluster] != "":
			text = "refused: " + e.Refused[m.Cluster]
		case slices.ContainsFunc(e.Contributions, func(c merge.Contribution) bool { return c.View.Cluster == m.Cluster }):
			text = "not exported: " + string(v1beta1.ServiceExportReasonNoService)
			e.Problems.Fail("exports-valid", withdraw(m.Cluster, e.Service),
				"%s does not export it: Service %s does not exist there.", m.Cluster, e.Service)
		case m.For != "":
			text = "not chosen: it is for " + m.For
			e.Problems.Fail("not-chosen", fmt.Sprintf("kubectl --context %s -n %s annotate serviceexport %s '%s=%s; %s' --overwrite",
				contextOf(m.Cluster), observed.Service.Namespace, observed.Service.Name, export.AnnotationClusters, m.For, e.Cluster),
				"The export of %s is not for %s: it is for %q (annotation %s).", m.Cluster, e.Cluster, m.For,
				export.AnnotationClusters)
		case m.Verdict.State != liveness.Fresh:
			text = m.Verdict.State.String()
		}
		e.Exports = append(e.Exports, state.Export{Cluster: m.Cluster, State: text})
	}
	slices.SortStableFunc(e.Endpoints, func(a, b state.Endpoint) int {
		return cmp.Or(place(a.Cluster)-place(b.Cluster), compareAddresses(a.Address, b.Address))
	})
}

// wait marks the endpoints that hints keep waiting: kube-proxy uses those without a local zone or node only if none
// with one is ready. It ignores all hints if a ready endpoint has none.
func (e *explanation) wait() {
	var first []string
	for i, each := range e.Endpoints {
		switch {
		case each.State != state.Used:
		case e.hints[i] == nil || e.headless():
			return
		case !forNobody(e.hints[i]) && !slices.Contains(first, each.Cluster):
			first = append(first, each.Cluster)
		}
	}
	for i := range e.Endpoints {
		if each := &e.Endpoints[i]; each.State == state.Used && len(first) > 0 && forNobody(e.hints[i]) {
			each.State = state.Waiting
			each.Reason = "hints put " + strings.Join(first, " and ") + " first: used only if no endpoint there is ready"
		}
	}
}

func (e *explanation) count() {
	for i := range e.Exports {
		out := &e.Exports[i]
		for _, endpoint := range e.Endpoints {
			switch {
			case endpoint.Cluster != out.Cluster:
			case endpoint.State == state.Used:
				out.Used++
			case endpoint.State == state.Demoted:
				out.Demoted++
			default:
				out.Other++
			}
		}
		if e.Import != nil {
			e.Import.Ready += out.Used
			e.Import.Endpoints += out.Used + out.Demoted + out.Other
		}
	}
}

// findings adds the problems and their fixes.
func (e *explanation) findings() {
	decision := e.decision
	observed := e.Observed
	switch foreign := observed.ServiceImport != nil && !export.IsManaged(observed.ServiceImport); {
	case e.Elsewhere != "" && observed.Invalid == nil:
		e.Problems.Warn("namespaces", e.Settle, "%s, so nothing is imported into it.", sentence(e.Elsewhere))
	case len(e.Exports) == 0 && foreign: // another implementation serves it
	case len(e.Exports) == 0 && len(e.Unread) > 0:
		e.Problems.Fail("member-reachable", "kubectl clusterset check --contexts "+contextOf(e.Cluster),
			"No export of %s is known, but these members are not read completely: %s.", e.Service, strings.Join(e.Unread, ", "))
	case len(e.Exports) == 0:
		e.Problems.Fail("exports", "kubectl clusterset export "+e.Service+" --contexts <context of a cluster that has the Service>",
			"Neither %s nor any of its members exports %s.", e.Cluster, e.Service)
	}
	if observed.Invalid != nil {
		e.Problems.Fail("exports-valid", withdraw(e.Cluster, e.Service), "%s does not export it: %s", e.Cluster, observed.Invalid.Message)
	}
	reach := meta.FindStatusCondition(observed.ExportConditions, reconciler.ConditionReach)
	if reach != nil && reach.Status != metav1.ConditionTrue && observed.Invalid == nil {
		e.Problems.Fail("exports-reach", "", "The export of %s does not reach all members. %s", e.Cluster, reach.Message)
	}
	for _, each := range e.Exports {
		m := e.publisher(each.Cluster)
		if refused := e.Refused[m.Cluster]; refused != "" {
			e.Problems.Fail("refused", m.Accept, "%s does not accept %s of %s: %s.", e.Cluster, e.Service, m.Cluster, refused)
		}
		if e.Problems = append(e.Problems, m.Findings...); m.Unread != nil && m.Verdict.State == liveness.Fresh {
			e.Problems.Fail("member-reachable", "kubectl clusterset check --contexts "+contextOf(e.Cluster)+","+contextOf(m.Cluster),
				"%s is not read completely, so what changes there may not be imported: %v.", m.Cluster, m.Unread)
		}
		for _, problem := range e.Input.Problems[each.Cluster] {
			e.Problems.Fail("endpoints-refused", correct(each.Cluster, m.Confine, problem), "Part of the export of %s is not imported: %s.",
				each.Cluster, problem)
		}
	}
	if decision.Conflict != "" {
		e.Problems.Warn("exports-agree", "Make the Services and ServiceExports the same in all clusters (a change of the type needs a "+
			"new Service), or withdraw the exports that differ.", "%s", decision.Conflict)
	}
	if serviceImport := observed.ServiceImport; serviceImport != nil {
		e.Problems = append(e.Problems, findingsOf(e.Cluster, serviceImport, len(decision.Precedence) > 0)...)
		if len(decision.Precedence) > 0 && export.IsManaged(serviceImport) &&
			!slices.ContainsFunc(e.Endpoints, func(each state.Endpoint) bool { return each.State != state.NotReady }) {
			e.Problems.Fail("endpoints-ready", fmt.Sprintf("kubectl --context %s -n %s get pods", contextOf(decision.Precedence[0].View.Cluster),
				observed.Service.Namespace), "No imported endpoint of %s is ready.", observed.Service.Name)
		}
	}
}
