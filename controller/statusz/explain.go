// SPDX-License-Identifier: Apache-2.0

package statusz

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
	"github.com/clusterset-dns/clusterset-dns/controller/reconciler"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// explain explains a service.
func (l *Leader) explain(service types.NamespacedName) *state.Explanation {
	in, states, found, unread := l.Look(service), map[string]string{}, state.Findings{}, state.Findings{}
	observed := in.Observed
	l.ofNamespace(&found, service.Namespace)
	if observed.ServiceExport != nil {
		states[l.Cluster] = liveness.Fresh.String()
		if observed.Invalid != nil {
			states[l.Cluster] = "not exported"
		}
		l.ofExport(&found, observed.ServiceExport)
		if reconciler.Standing(l.Local.Namespace(l.Namespace)).Demote {
			drained(&found, l.Cluster, undrain(l.Cluster, l.Cluster))
		}
	}
	for _, m := range l.Members.List() {
		cluster := m.Cluster()
		packed, _ := m.Read(service)
		published := slices.DeleteFunc(export.OpenAll(packed), func(each *discoveryv1.EndpointSlice) bool { return !export.IsManaged(each) })
		at := slices.IndexFunc(in.Contributions, func(c merge.Contribution) bool { return c.View.Cluster == cluster })
		if len(published) == 0 && at < 0 {
			l.ofMember(&unread, m)
			continue
		}
		known, refused, others := l.Tracker.Of(cluster), in.Refused[cluster], chosen(published, l.Source().Reader)
		how := known.Verdict.State.String()
		switch {
		case refused != "":
			how = "refused"
			found.Fail("refused", l.accept(m, service), "%s does not accept %s of %s: %s.", l.Cluster, service, cluster, refused)
		case at >= 0 && in.Contributions[at].View.Absent():
			how = "not exported"
			found.Fail("exports-valid", withdraw(cluster, service.String()), "%s does not export %s: the Service does not exist there.",
				cluster, service)
		case at >= 0:
		case others != "":
			how = "not chosen"
			found.Fail("not-chosen", kubectl(cluster, "-n %s annotate serviceexport %s '%s=%s; %s' --overwrite", service.Namespace,
				service.Name, export.AnnotationClusters, others, l.Cluster),
				"The export of %s is not for %s: it is for %q (annotation %s).", cluster, l.Cluster, others, export.AnnotationClusters)
		case how == liveness.Fresh.String():
			how = "not imported"
		}
		if states[cluster] = how; known.Verdict.State == liveness.Fresh {
			l.ofMember(&found, m)
		} else {
			l.judged(&found, m, known)
		}
	}
	l.ofParts(&found, in)
	if len(states) == 0 && (observed.ServiceImport == nil || export.IsManaged(observed.ServiceImport)) { // no other implementation serves it
		found = append(found, unread...)
		found.Fail("exports", "kubectl clusterset export "+service.String()+" --contexts <context of a cluster that has the Service>",
			"No export of %s is known in %s.", service, l.Cluster)
	}
	return explanation(in, states, found)
}

// chosen returns the selector of the clusters that an export is for, empty if it selects the reader.
func chosen(published []*discoveryv1.EndpointSlice, reader scope.Cluster) string {
	for _, slice := range published {
		text := export.ClustersOf(slice)
		if clusters, _ := scope.ParseSelector(text); text != "" && !clusters.Selects(reader, reader) { // it is valid
			return text
		}
	}
	return ""
}

// explanation explains a service by the input of a pass. states has a state for each known export, by cluster, and problems their
// problems.
func explanation(in reconciler.Input, states map[string]string, problems state.Findings) *state.Explanation {
	observed, imported := in.Observed, in.Observed.ServiceImport
	result, decision := merge.Decide(observed, in.Contributions)
	out := &state.Explanation{
		Version: state.Version, Service: observed.Service.String(), Cluster: observed.Cluster,
		Exports: []state.Export{}, Conditions: []metav1.Condition{}, Endpoints: []state.Endpoint{}, DNS: []string{}, Problems: problems,
	}
	if decision.Conflict != "" && (observed.ServiceExport == nil || observed.Invalid != nil) { // else its condition has it
		conflict(&out.Problems, out.Service, decision.Conflict)
	}
	headless, hinted := false, false
	if imported == nil {
		result.EndpointSlices = nil // the controller has not written it
	} else {
		from := importOf(imported)
		out.Import, headless = &from, imported.Spec.Type == v1beta1.Headless
		for _, kind := range placement.Kinds {
			if told := meta.FindStatusCondition(imported.Status.Conditions, kind); told != nil {
				out.Conditions = append(out.Conditions, *told)
			}
		}
		hinted = !headless && followed(result.EndpointSlices)
	}
	for _, from := range decision.Precedence {
		cluster := from.View.Cluster
		each := state.Export{
			Cluster: cluster, State: states[cluster], Since: from.View.Spec.Created, Rules: decision.Placement.Rules(cluster),
		}
		delete(states, cluster)
		if first := from.View.Slices[0]; first.Exposed != "" {
			each.Rules = append(each.Rules, fmt.Sprintf("by %s, because it is in network %q", first.Exposed, first.Network))
		}
		for _, property := range decision.Properties {
			if slices.Contains(property.Dissent, from.View) {
				each.Rules = append(each.Rules, "conflicting "+property.Field)
			}
		}
		if from.Demote && each.State == liveness.Fresh.String() {
			each.State += ", drained"
		}
		wasReady := map[string]bool{} // by address
		for i := range from.View.Slices {
			for _, endpoint := range from.View.Slices[i].Endpoints {
				wasReady[endpoint.Addresses[0]] = export.IsReady(&endpoint)
			}
		}
		for _, slice := range result.EndpointSlices {
			if slice.Labels[export.LabelSourceCluster] != cluster || export.IsExposed(slice) {
				continue
			}
			for i := range slice.Endpoints {
				endpoint := &slice.Endpoints[i]
				address, ready := endpoint.Addresses[0], export.IsReady(endpoint)
				how, why := state.NotReady, "not ready in "+cluster
				switch level, _ := decision.Placement.Level(from, endpoint); {
				case level == merge.Unused:
					how, why = state.Outside, strings.Join(each.Rules, ", ")
				case ready && !headless && len(slice.Ports) == 0:
					how, why = state.Unused, "the Service in "+cluster+" has none of the imported ports"
				case ready && hinted && forNobody(endpoint.Hints):
					how, why = state.Waiting, "hints put other endpoints first, until none of these is ready"
				case ready:
					how, why = state.Used, "ready"
					each.Ready++
				case wasReady[address]:
					how = state.Demoted
					why = strings.Join(slices.Insert(slices.Clone(each.Rules), 0, each.State), ", ") + ": endpoints that come first are ready"
				}
				if ready && headless {
					out.DNS = append(out.DNS, address)
				}
				each.Endpoints++
				out.Endpoints = append(out.Endpoints, state.Endpoint{
					Address: address, Cluster: cluster, State: how, Reason: why, Zone: ptr.Deref(endpoint.Zone, ""),
				})
			}
		}
		out.Exports = append(out.Exports, each)
		if out.Import != nil {
			out.Import.Ready, out.Import.Endpoints = out.Import.Ready+each.Ready, out.Import.Endpoints+each.Endpoints
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(states)) {
		out.Exports = append(out.Exports, state.Export{Cluster: cluster, State: states[cluster]})
	}
	if imported != nil {
		if !headless {
			out.DNS = append(out.DNS, imported.Spec.IPs...)
		}
		ofImport(&out.Problems, out.Cluster, imported, len(decision.Precedence) > 0)
		if export.IsManaged(imported) && len(decision.Precedence) > 0 &&
			!slices.ContainsFunc(out.Endpoints, func(each state.Endpoint) bool { return each.State != state.NotReady }) {
			out.Problems.Fail("endpoints-ready", kubectl(decision.Precedence[0].View.Cluster, "-n %s get pods", imported.Namespace),
				"No imported endpoint of %s is ready.", out.Service)
		}
	}
	return out
}

// followed reports whether kube-proxy follows hints: all ready endpoints have some, and some of these are for local nodes.
func followed(all []*discoveryv1.EndpointSlice) bool {
	local := false
	for _, slice := range all {
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			if len(slice.Ports) == 0 || export.IsExposed(slice) || !export.IsReady(endpoint) {
				continue
			}
			if endpoint.Hints == nil {
				return false
			}
			local = local || !forNobody(endpoint.Hints)
		}
	}
	return local
}

// forNobody reports whether no local node follows hints.
func forNobody(hints *discoveryv1.EndpointHints) bool {
	return !slices.ContainsFunc(hints.ForNodes, func(node discoveryv1.ForNode) bool { return !placement.ForNobody(node.Name) }) &&
		!slices.ContainsFunc(hints.ForZones, func(zone discoveryv1.ForZone) bool { return !placement.ForNobody(zone.Name) })
}
