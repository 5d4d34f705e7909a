// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
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
	"github.com/clusterset-dns/clusterset-dns/controller/traffic"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/topology"
)

// A Preference is which endpoints clients in the cluster use first.
type Preference struct {
	// Effect says so, in a sentence each for the order, the border and the weights.
	Effect string `json:"effect"`
	// SetBy is where the preference is set, empty if it is not.
	SetBy string `json:"setBy,omitempty"`
	// Note says why it has no effect, or not everywhere; empty if it has.
	Note string `json:"note,omitempty"`
}

// requested is a preference and where it is set.
type requested struct {
	locality.Preference
	tiers traffic.Tiers
	by    []string
	// condition is that of the import, nil if it has none.
	condition *metav1.Condition
}

// prefers sets Preference from the import. The oldest export has set it.
func (e *Explanation) prefers(f *facts.Facts, service types.NamespacedName, oldest string,
	serviceImport *v1beta1.ServiceImport,
) {
	if serviceImport == nil || !export.IsManaged(serviceImport) {
		return
	}
	distribution, annotation := ptr.Deref(serviceImport.Spec.TrafficDistribution, ""),
		serviceImport.Annotations[export.AnnotationPrefer]
	asked := requested{condition: meta.FindStatusCondition(serviceImport.Status.Conditions, merge.ConditionPreferCluster)}
	operator := ""
	if asked.condition != nil && distribution == "" && annotation == "" {
		operator = cmp.Or(f.Prefer, locality.PreferCluster)
		asked.by = append(asked.by, "--prefer="+operator+" of the controller in "+f.ID)
	}
	asked.Preference, _ = locality.PreferenceOf(distribution, annotation, operator) // the condition tells of the error
	asked.tiers, _ = locality.TiersOf(distribution, annotation, operator)
	if annotation != "" {
		asked.by = append(asked.by, "the exported annotation "+export.AnnotationPrefer+": "+annotation+
			" of the ServiceExport in "+oldest)
	}
	if asked.Zone {
		asked.by = append(asked.by, "trafficDistribution: "+distribution+" of the Service in "+oldest)
	}
	e.Preference = &Preference{}
	if serviceImport.Spec.Type == v1beta1.Headless {
		e.answered(f, asked)
	} else {
		e.hinted(f, service, oldest, asked)
	}
	e.limited(f, oldest, serviceImport)
}

// limited adds the border and the weights of the import to Preference.
func (e *Explanation) limited(f *facts.Facts, oldest string, serviceImport *v1beta1.ServiceImport) {
	p := e.Preference
	var effects, by []string
	if within := serviceImport.Annotations[export.AnnotationWithin]; within != "" {
		effects = append(effects, "Only endpoints of these clusters are used: "+within+".")
		if _, err := traffic.ParseBorder(within); err != nil {
			effects = []string{"The border is invalid: only endpoints of " + f.ID + " are used."}
		}
		by = append(by, "the exported annotation "+export.AnnotationWithin+": "+within)
	}
	equally := "All endpoints are used equally."
	if text := serviceImport.Annotations[export.AnnotationWeights]; text != "" {
		if weights, err := traffic.ParseWeights(text); err == nil && weights != nil {
			effects, equally = append(effects, "Clusters get these shares: "+text+"."), ""
		}
		by = append(by, "the exported annotation "+export.AnnotationWeights+": "+text)
	}
	effects = append([]string{cmp.Or(p.Effect, equally)}, effects...)
	p.Effect = strings.TrimSpace(strings.Join(effects, " "))
	for _, each := range by {
		p.SetBy += " and " + each + " of the ServiceExport in " + oldest
	}
	p.SetBy = strings.TrimPrefix(p.SetBy, " and ")
}

func inOrder(tiers traffic.Tiers) string {
	return fmt.Sprintf("Endpoints are used in this order of clusters: %s.", tiers)
}

const elseOthers = "; other endpoints are used if none of these is ready."

// hinted sets Preference for a virtual IP: kube-proxy follows the hints of slices.
func (e *Explanation) hinted(f *facts.Facts, service types.NamespacedName, oldest string, asked requested) {
	p := e.Preference
	p.SetBy = strings.Join(asked.by, " and ")
	clients := "Clients in " + f.ID + " prefer endpoints "
	switch {
	case asked.tiers.Any() && !asked.tiers.OnlyLocal():
		p.Effect = inOrder(asked.tiers)
	case asked.Cluster && !slices.ContainsFunc(e.Endpoints, func(each Endpoint) bool { return each.Cluster == f.ID }):
		p.Effect = f.ID + " has no endpoint itself, so all endpoints are used equally."
	case asked.Cluster && asked.Node:
		p.Effect = clients + "on their node, then in their zone of " + f.ID + ", then in " + f.ID + elseOthers
	case asked.Cluster && asked.Zone:
		p.Effect = clients + "in their zone of " + f.ID + ", then in " + f.ID + elseOthers
	case asked.Cluster:
		p.Effect = clients + "in " + f.ID + elseOthers
	case asked.Node:
		p.Effect = clients + "on their node, then in their zone of any cluster" + elseOthers
	case asked.Zone:
		p.Effect = clients + "in their zone of any cluster" + elseOthers
	}
	const noZone = "kubectl --context %s label node <node> " + corev1.LabelTopologyZone +
		"=<zone of the node>"
	told := asked.condition
	switch {
	case told != nil && told.Reason == merge.ReasonUnknownPreference:
		p.Note = "The value is not valid and has no effect."
		e.problem(Exported(f.ContextOf(oldest), service, export.AnnotationPrefer), "%s", told.Message)
	case told != nil:
	case asked.Preference != (locality.Preference{}) && len(e.Endpoints) > 0 &&
		!slices.ContainsFunc(e.Endpoints, func(each Endpoint) bool { return each.HintedFor != "" }):
		p.Note = "Endpoints have no hints, because no node of " + f.ID + " has the label " +
			corev1.LabelTopologyZone + "."
		e.problem(fmt.Sprintf(noZone, f.Context), "%s", p.Note)
	}
}

// limits adds a problem for a border and for weights that are not in effect.
func (e *Explanation) limits(f *facts.Facts, service types.NamespacedName, oldest string,
	serviceImport *v1beta1.ServiceImport,
) {
	if serviceImport == nil || !export.IsManaged(serviceImport) {
		return
	}
	for _, each := range [][2]string{
		{merge.ConditionWithin, export.AnnotationWithin}, {merge.ConditionWeights, export.AnnotationWeights},
	} {
		told := meta.FindStatusCondition(serviceImport.Status.Conditions, each[0])
		unserved := !slices.ContainsFunc(e.Endpoints, func(each Endpoint) bool { return each.State == Used })
		if told == nil || told.Status != metav1.ConditionFalse || told.Reason == merge.ReasonOtherShares && unserved {
			continue
		}
		fix := Exported(f.ContextOf(oldest), service, each[1])
		if told.Reason == merge.ReasonOtherShares {
			fix = "Change the number of ready endpoints, or the weights: `" + fix + "`."
		}
		e.problem(fix, "%s", told.Message)
	}
}

// answered sets Preference for a headless service: DNS selects the endpoints.
func (e *Explanation) answered(f *facts.Facts, asked requested) {
	p, r := e.Preference, e.resolver
	if asked.tiers.Any() && !asked.tiers.OnlyLocal() {
		p.Effect, p.SetBy = inOrder(asked.tiers), strings.Join(asked.by, " and ")
		return
	}
	switch r.prefer {
	case topology.PreferCluster:
		p.Effect = "DNS returns the endpoints in " + f.ID + ", or all others if none of these is ready."
	case topology.PreferZone:
		p.Effect = "DNS returns the endpoints in the zone of the client, or else in " + f.ID +
			", in the region of the client, or all."
	}
	if p.Effect != "" && r.service.Import.Prefer == topology.PreferDefault {
		asked.by = []string{"prefer " + r.option("prefer")[0] + " in the Corefile"}
	}
	p.SetBy = strings.Join(asked.by, " and ")
	switch {
	case p.Effect == "":
	case r.option == nil && r.prefer == topology.PreferCluster:
		p.Note = "The options of the DNS server are unknown: without `cluster " + f.ID + "`, it returns all endpoints."
	case r.option == nil: // whether DNS does so is not known
	case r.option("cluster") == nil:
		p.Note = "The Corefile has no `cluster " + f.ID + "`, so DNS returns all endpoints."
		e.problem(fmt.Sprintf("Add `cluster %s` to the multicluster block of the Corefile: `kubectl --context %s -n %s "+
			"edit configmap %s`.", f.ID, f.Context, coredns.Namespace, coredns.Name), "%s", p.Note)
	case r.prefer == topology.PreferZone && !r.zones():
		p.Note = "Without `prefer zone` in the Corefile, DNS does not know the zones of clients, and prefers endpoints in " +
			f.ID + "."
	}
}

// noLocalZone is the text of hints that no node of the cluster follows.
const noLocalZone = "no local zone"

// hintText is the value of Endpoint.HintedFor.
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
	text := noLocalZone
	if len(zones) > 0 {
		text = "zone " + strings.Join(zones, ",")
	}
	if len(nodes) > 0 {
		text = "node " + strings.Join(nodes, ",") + ", " + text
	}
	return text
}
