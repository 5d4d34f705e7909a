// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// A Preference is which endpoints clients in the cluster use first.
type Preference struct {
	// First says which, in one sentence.
	First string `json:"first"`
	// AskedBy is who asked for it, empty where nobody did.
	AskedBy string `json:"askedBy,omitempty"`
	// But says why it has no effect, or not everywhere; empty where it has.
	But string `json:"but,omitempty"`
}

// wished is what is asked for, and by whom.
type wished struct {
	locality.Preference
	by []string
	// condition is what the controller says of it, nil where it says nothing.
	condition *metav1.Condition
}

// prefers adds which endpoints come first. The import says what is wished, and
// the oldest export who wished it.
func (e *Explanation) prefers(f *facts.Facts, service types.NamespacedName, zone, oldest string,
	serviceImport *v1beta1.ServiceImport,
) {
	if serviceImport == nil || !export.IsManaged(serviceImport) {
		return
	}
	distribution, annotation := ptr.Deref(serviceImport.Spec.TrafficDistribution, ""),
		serviceImport.Annotations[export.AnnotationPrefer]
	asked := wished{condition: meta.FindStatusCondition(serviceImport.Status.Conditions, merge.ConditionPreferCluster)}
	operator := ""
	if asked.condition != nil && distribution == "" && annotation == "" {
		operator = locality.PreferCluster
		asked.by = append(asked.by, "--prefer=cluster of the controller of "+f.ID)
	}
	asked.Preference, _ = locality.PreferenceOf(distribution, annotation, operator) // the condition tells of the error
	if annotation != "" {
		asked.by = append(asked.by, "the exported annotation "+export.AnnotationPrefer+": "+annotation+
			" of the ServiceExport in "+oldest)
	}
	if asked.Zone {
		asked.by = append(asked.by, "trafficDistribution: "+distribution+" of the Service in "+oldest)
	}
	e.Preference = &Preference{}
	if serviceImport.Spec.Type == v1beta1.Headless {
		e.answered(f, zone, asked)
	} else {
		e.hinted(f, service, oldest, asked)
	}
	if e.Preference.First == "" {
		e.Preference.First = "All endpoints are used alike."
	}
}

const elseOthers = "; the others serve where none of these is ready."

// hinted is the preference of clients of an IP, which kube-proxy follows by
// hints.
func (e *Explanation) hinted(f *facts.Facts, service types.NamespacedName, oldest string, asked wished) {
	p := e.Preference
	p.AskedBy = strings.Join(asked.by, " and ")
	clients := "Clients in " + f.ID + " use endpoints of "
	switch {
	case asked.Cluster && !slices.ContainsFunc(e.Endpoints, func(each Endpoint) bool { return each.Cluster == f.ID }):
		p.First = f.ID + " has no endpoint of its own, so all are used alike."
	case asked.Cluster && asked.Node:
		p.First = clients + "their own node first, then of their zone in " + f.ID + ", then of all " + f.ID + elseOthers
	case asked.Cluster && asked.Zone:
		p.First = clients + "their own zone in " + f.ID + " first, then of all " + f.ID + elseOthers
	case asked.Cluster:
		p.First = clients + f.ID + " first" + elseOthers
	case asked.Node:
		p.First = clients + "their own node first, then of their zone in any cluster" + elseOthers
	case asked.Zone:
		p.First = clients + "their own zone first, in any cluster" + elseOthers
	}
	const noZone = "kubectl --context %s label node <name of the node> " + corev1.LabelTopologyZone +
		"=<zone that it is in>"
	told := asked.condition
	switch {
	case told != nil && told.Reason == merge.ReasonUnknownPreference:
		p.But = "this is no preference, and has no effect"
		e.problem(fmt.Sprintf(`kubectl --context %s -n %s patch serviceexport %s --type merge -p '{"spec":{"exportedAnnotations":{"%s":"<%s or %s>"}}}'`,
			f.ContextOf(oldest), service.Namespace, service.Name, export.AnnotationPrefer, locality.PreferCluster,
			locality.PreferNone), "%s", told.Message)
	case told != nil && told.Reason == merge.ReasonTooManyZones:
		p.But = told.Message
		e.problem("Have nodes share zones, or live without the preference.", "%s", told.Message)
	case told != nil && told.Reason != merge.ReasonHinted:
		p.But = told.Message
		e.problem(fmt.Sprintf(noZone, f.Context), "%s", told.Message)
	case asked.Preference != (locality.Preference{}) && len(e.Endpoints) > 0 &&
		!slices.ContainsFunc(e.Endpoints, func(each Endpoint) bool { return each.HintedFor != "" }):
		p.But = "No endpoint is hinted for a zone, as no node of " + f.ID + " has the label " +
			corev1.LabelTopologyZone + "."
		e.problem(fmt.Sprintf(noZone, f.Context), "%s", p.But)
	}
}

// answered is the preference of clients that ask DNS for the endpoints, and
// what DNS is to answer by it.
func (e *Explanation) answered(f *facts.Facts, zone string, asked wished) {
	p := e.Preference
	var options func(string) []string
	if corefile, err := coredns.ParseCorefile(f.Corefile); err == nil && corefile.Serves(zone) {
		options = func(name string) []string { return corefile.Option(zone, name) }
		e.part = options("max_answers") != nil
		if prefer := options("prefer"); len(asked.by) == 0 && len(prefer) == 1 && prefer[0] != locality.PreferNone {
			asked.Cluster, asked.Zone = prefer[0] == locality.PreferCluster, prefer[0] == "zone"
			asked.by = append(asked.by, "prefer "+prefer[0]+" in the Corefile")
		}
	}
	p.AskedBy = strings.Join(asked.by, " and ")
	switch {
	case asked.Cluster:
		p.First = "DNS answers with endpoints of " + f.ID + "; with the others where none of these is ready."
	case asked.Zone:
		p.First = "DNS answers with endpoints of the client's zone, in any cluster; else of " + f.ID +
			", of the client's region, of all."
	default:
		return
	}
	switch {
	case options == nil:
		e.part = true // whether DNS does so is not known
	case options("cluster") == nil:
		p.But = "The Corefile does not say which cluster this is, so that DNS answers with all endpoints."
		e.problem(fmt.Sprintf("Add `cluster %s` to the block of multicluster in the Corefile: `kubectl --context %s -n %s edit configmap %s`.", f.ID, f.Context, coredns.Namespace, coredns.Name), "%s", p.But)
	case asked.Cluster:
		e.onlyNear = true
	case !slices.Equal(options("prefer"), []string{"zone"}):
		e.onlyNear = true
		p.But = "Without `prefer zone` in the Corefile, DNS does not know the zone of a client, and answers with endpoints of " + f.ID + " first."
	default:
		e.part = true // it depends on who asks
	}
}

// leadsTo notes an address that the name of a headless service may lead to.
func (e *Explanation) leadsTo(address string, own bool, state string, conditions discoveryv1.EndpointConditions) {
	all, near := &e.expected, &e.near
	switch {
	case state == Used:
	case isTrue(conditions.Serving) && isTrue(conditions.Terminating):
		all, near = &e.last, &e.lastNear
	default:
		return
	}
	*all = append(*all, address)
	if own {
		*near = append(*near, address)
	}
}

// expect is what DNS should answer of one family.
func (e *Explanation) expect(six bool) []string {
	of := func(addresses []string) []string {
		kept := []string{}
		for _, address := range addresses {
			if strings.Contains(address, ":") == six {
				kept = append(kept, address)
			}
		}
		return kept
	}
	if near := of(e.near); e.onlyNear && len(near) > 0 {
		return near
	}
	return of(e.expected)
}

// hintText says for whom an endpoint is hinted, empty where it has no hints.
func hintText(hints *discoveryv1.EndpointHints) string {
	if hints == nil {
		return ""
	}
	var zones, nodes []string
	for _, each := range hints.ForZones {
		if !locality.ForNobody(each.Name) {
			zones = append(zones, each.Name)
		}
	}
	for _, each := range hints.ForNodes {
		if !locality.ForNobody(each.Name) {
			nodes = append(nodes, each.Name)
		}
	}
	text := "no zone here"
	if len(zones) > 0 {
		text = "zone " + strings.Join(zones, ",")
	}
	if len(nodes) > 0 {
		text = "node " + strings.Join(nodes, ",") + ", " + text
	}
	return text
}
