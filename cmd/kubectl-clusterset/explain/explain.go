// SPDX-License-Identifier: Apache-2.0

// Package explain says why a service answers what it answers in a cluster. It
// is made of facts, by the rules that the controller follows, and asks nobody.
package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/status"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// DefaultZone is the zone of the set where nobody says otherwise.
const DefaultZone = "clusterset.local"

// An Explanation is of one service in one cluster.
type Explanation struct {
	Service string `json:"service"`
	Cluster string `json:"cluster"`
	Context string `json:"context"`
	// Name is the one that clients ask for.
	Name string `json:"name"`
	// Summary says in one or two sentences what comes of it.
	Summary string `json:"summary"`
	// Import is nil where the service is not imported.
	Import  *Import  `json:"import,omitempty"`
	Exports []Export `json:"exports"`
	// Ranked tells that the first export decides conflicts by the rank of its
	// cluster, and not as the oldest.
	Ranked     bool       `json:"ranked,omitempty"`
	Properties []Property `json:"properties"`
	// Preference is nil where the service is not imported.
	Preference *Preference `json:"preference,omitempty"`
	Endpoints  []Endpoint  `json:"endpoints"`
	// Asked is who was asked, empty where nobody was; Answers are what it said.
	Asked    string    `json:"asked,omitempty"`
	Answers  []Answer  `json:"answers"`
	Problems []Problem `json:"problems"`

	now       time.Time
	namespace string
	// zone and system are flags that a command needs to mean the same, each
	// empty or with a space before.
	zone, system string
	// expected are the addresses that the name should lead to, near those of
	// them that are of this cluster.
	expected, near []string
	// last and lastNear take their place where no endpoint of a headless service
	// is ready: those that are terminating, and serve still.
	last, lastNear []string
	// onlyNear tells that DNS answers with the near ones while there are some,
	// part that an answer may have a part of what is expected.
	onlyNear, part bool
}

// An Import is what the cluster has of the service.
type Import struct {
	Type   string   `json:"type"`
	IPs    []string `json:"ips"`
	Ports  []string `json:"ports"`
	Reason string   `json:"reason"`
}

// An Export is what one cluster says of the service.
type Export struct {
	Cluster string       `json:"cluster"`
	Since   *metav1.Time `json:"since,omitempty"`
	// State is fresh, stale or gone, and whether it is drained or invalid.
	State string `json:"state"`
	// Used, Demoted and Other count its endpoints here.
	Used    int `json:"used"`
	Demoted int `json:"demoted"`
	Other   int `json:"other"`
	// Why says what follows from the state, empty where nothing does.
	Why string `json:"why,omitempty"`
}

// A Property is one part of the import and where it comes from.
type Property struct {
	Field string `json:"field"`
	Value string `json:"value"`
	From  string `json:"from"`
	// Dissent is what other clusters say, as in "west: Headless".
	Dissent []string `json:"dissent,omitempty"`
}

// States of an endpoint.
const (
	Used     = "used"
	Demoted  = "demoted"
	NotReady = "not ready"
	Unused   = "unused"
	Refused  = "refused"
	NotHere  = "not here"
)

// An Endpoint is one address behind the service.
type Endpoint struct {
	Address string `json:"address"`
	Cluster string `json:"cluster"`
	State   string `json:"state"`
	Why     string `json:"why"`
	// Zone is the one that it is in, empty where that is not known.
	Zone string `json:"zone,omitempty"`
	// HintedFor says which clients here are to use it first, empty where it has
	// no hints.
	HintedFor string `json:"hintedFor,omitempty"`
}

// An Answer is what DNS says, and what it should say.
type Answer struct {
	dns.Answer
	// Wrong tells that it should say something else: Expected, or, where Part
	// is set, some of it.
	Wrong    bool     `json:"wrong,omitempty"`
	Part     bool     `json:"part,omitempty"`
	Expected []string `json:"expected"`
}

// A Problem is what is not as a person would want it.
type Problem struct {
	What string `json:"what"`
	// Fix is a command or a sentence that says what to do.
	Fix string `json:"fix,omitempty"`
}

// Of explains a service in a cluster whose members have been asked.
func Of(f *facts.Facts, service types.NamespacedName, zone string) *Explanation {
	e := &Explanation{
		Service: service.String(), Cluster: f.ID, Context: f.Context,
		Name:    service.Name + "." + service.Namespace + ".svc." + strings.TrimSuffix(zone, "."),
		Exports: []Export{}, Properties: []Property{}, Endpoints: []Endpoint{}, Answers: []Answer{}, Problems: []Problem{},
		now: f.Now, namespace: service.Namespace,
	}
	sources := f.Sources(service)
	account := merge.Explain(facts.Contributions(sources))
	serviceImport := f.Import(service)
	if named := strings.TrimSuffix(zone, "."); named != DefaultZone {
		e.zone = " --zone " + named
	}
	if f.System != member.DefaultNamespace {
		e.system = " --system-namespace " + f.System
	}
	e.imported(serviceImport)
	e.properties(account)
	for i := range sources {
		e.export(f, service, &sources[i], serviceImport)
	}
	if len(e.expected) == 0 {
		e.expected, e.near = e.last, e.lastNear
	}
	e.byPrecedence(account.Precedence)
	e.problems(f, service, sources, serviceImport, account)
	if len(account.Precedence) > 0 {
		e.prefers(f, service, zone, account.Precedence[0], serviceImport)
	}
	e.summary(f, service, sources, serviceImport)
	return e
}

func (e *Explanation) problem(fix, format string, args ...any) {
	e.Problems = append(e.Problems, Problem{What: fmt.Sprintf(format, args...), Fix: fix})
}

func (e *Explanation) imported(serviceImport *v1beta1.ServiceImport) {
	if serviceImport == nil {
		return
	}
	e.Import = &Import{Type: string(serviceImport.Spec.Type), IPs: append([]string{}, serviceImport.Spec.IPs...), Ports: []string{}, Reason: "Unknown"}
	for _, port := range serviceImport.Spec.Ports {
		e.Import.Ports = append(e.Import.Ports, status.PortText(port))
	}
	if ready := meta.FindStatusCondition(serviceImport.Status.Conditions, string(v1beta1.ServiceImportConditionReady)); ready != nil {
		e.Import.Reason = ready.Reason
	}
	if serviceImport.Spec.Type == v1beta1.ClusterSetIP {
		e.expected = slices.Clone(serviceImport.Spec.IPs)
	}
}

func (e *Explanation) properties(account merge.Account) {
	e.Ranked = account.Ranked
	for _, property := range account.Properties {
		out := Property{Field: property.Field, Value: property.Value, From: account.Precedence[0]}
		for _, dissent := range property.Dissent {
			out.Dissent = append(out.Dissent, dissent.Cluster+": "+quoteEmpty(dissent.Value))
		}
		e.Properties = append(e.Properties, out)
	}
}

func quoteEmpty(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// byPrecedence sorts the exports as the merge has them; what contributes
// nothing is last.
func (e *Explanation) byPrecedence(precedence []string) {
	rank := func(cluster string) int {
		if at := slices.Index(precedence, cluster); at >= 0 {
			return at
		}
		return len(precedence)
	}
	slices.SortStableFunc(e.Exports, func(a, b Export) int { return rank(a.Cluster) - rank(b.Cluster) })
	slices.SortStableFunc(e.Endpoints, func(a, b Endpoint) int {
		if order := rank(a.Cluster) - rank(b.Cluster); order != 0 {
			return order
		}
		return compareAddresses(a.Address, b.Address)
	})
	slices.SortFunc(e.expected, compareAddresses)
}

func compareAddresses(a, b string) int {
	left, err := netip.ParseAddr(a)
	right, otherErr := netip.ParseAddr(b)
	if err != nil || otherErr != nil {
		return strings.Compare(a, b)
	}
	return left.Compare(right)
}

// export adds what one cluster says and what came of its endpoints.
func (e *Explanation) export(f *facts.Facts, service types.NamespacedName, source *facts.Source, serviceImport *v1beta1.ServiceImport) {
	out := Export{Cluster: source.Cluster, State: e.state(source), Why: e.why(source)}
	view := source.View
	if view == nil {
		view = source.Published
	}
	if view != nil && !view.Absent() {
		out.Since = &metav1.Time{Time: view.Spec.Created}
	}
	for _, endpoint := range e.endpoints(f, service, source, view, serviceImport) {
		switch endpoint.State {
		case Used:
			out.Used++
		case Demoted:
			out.Demoted++
		default:
			out.Other++
		}
		e.Endpoints = append(e.Endpoints, endpoint)
	}
	e.Exports = append(e.Exports, out)
}

func (e *Explanation) state(source *facts.Source) string {
	text := source.State.String()
	if source.Drained {
		text += ", drained"
	}
	if source.Invalid != nil {
		text = "not exported: " + source.Invalid.Reason
	}
	return text
}

func (e *Explanation) why(source *facts.Source) string {
	switch {
	case source.Invalid != nil:
		return source.Invalid.Message
	case source.State == liveness.Gone:
		return "it was silent for too long: nothing of it counts"
	case source.State == liveness.Stale:
		return "it is stale (last heard " + e.heard(source) + "): its endpoints are used only where no other cluster has a ready one"
	case source.Drained:
		return "it is drained: its endpoints are used only where no other cluster has a ready one"
	}
	return ""
}

func (e *Explanation) heard(source *facts.Source) string {
	if source.Member == nil || source.Member.Heard().IsZero() {
		return "never"
	}
	return e.now.Sub(source.Member.Heard()).Round(time.Second).String() + " ago"
}

// endpoints says what came of each endpoint of a cluster. The slices here are
// what is in effect; the view has what the cluster itself says.
func (e *Explanation) endpoints(f *facts.Facts, service types.NamespacedName, source *facts.Source, view *export.View, serviceImport *v1beta1.ServiceImport) []Endpoint {
	said := map[string]bool{}
	if view != nil {
		for i := range view.Slices {
			for _, endpoint := range view.Slices[i].Endpoints {
				said[endpoint.Addresses[0]] = isTrue(endpoint.Conditions.Ready)
			}
		}
	}
	var found []Endpoint
	here := map[string]bool{}
	for _, slice := range f.Copies(service, source.Cluster) {
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			state, why := e.endpoint(source, slice, endpoint, said, serviceImport)
			for _, address := range endpoint.Addresses {
				here[address] = true
				found = append(found, Endpoint{Address: address, Cluster: source.Cluster, State: state, Why: why, Zone: ptr.Deref(endpoint.Zone, ""), HintedFor: hintText(endpoint.Hints)})
				if serviceImport != nil && serviceImport.Spec.Type == v1beta1.Headless {
					e.leadsTo(address, source.Own, state, endpoint.Conditions)
				}
			}
		}
	}
	for address := range said {
		if !here[address] {
			found = append(found, Endpoint{Address: address, Cluster: source.Cluster, State: NotHere, Why: e.notHere(f, service, source)})
		}
	}
	for _, problem := range source.Problems {
		address, _, _ := strings.Cut(problem.Message, " ")
		if _, err := netip.ParseAddr(strings.Trim(address, `"`)); err != nil {
			address = "-"
		}
		why := problem.Message
		if problem.Reason == export.ReasonForeignAddress && source.Member != nil {
			why = "not in " + rangesOf(source.Member)
		}
		if problem.Count > 1 {
			why += fmt.Sprintf(" (and %d more)", problem.Count-1)
		}
		found = append(found, Endpoint{Address: strings.Trim(address, `"`), Cluster: source.Cluster, State: Refused, Why: why})
	}
	return found
}

// endpoint says what is made of an endpoint that is here.
func (e *Explanation) endpoint(source *facts.Source, slice *discoveryv1.EndpointSlice, endpoint *discoveryv1.Endpoint, said map[string]bool, serviceImport *v1beta1.ServiceImport) (state, why string) {
	headless := serviceImport != nil && serviceImport.Spec.Type == v1beta1.Headless
	switch ready := ptr.Deref(endpoint.Conditions.Ready, true); {
	case ready && !headless && len(slice.Ports) == 0:
		return Unused, source.Cluster + "'s Service has none of the ports of this name (" + strings.Join(e.ports(), ", ") + ")"
	case ready && source.Drained:
		return Used, "used although " + source.Cluster + " is drained: no other cluster has a ready one"
	case ready && source.Demoted():
		return Used, "used although " + source.Cluster + " is silent: no other cluster has a ready one"
	case ready:
		return Used, "ready"
	case said[endpoint.Addresses[0]] && source.Demoted():
		reason := source.Cluster + " is " + source.State.String()
		if source.Drained {
			reason = source.Cluster + " is drained"
		}
		return Demoted, reason + ", and another cluster has a ready one"
	case isTrue(endpoint.Conditions.Terminating):
		return NotReady, "terminating"
	}
	return NotReady, source.Cluster + " says that it is not ready"
}

func (e *Explanation) notHere(f *facts.Facts, service types.NamespacedName, source *facts.Source) string {
	switch {
	case f.Namespaces[service.Namespace] == nil:
		return fmt.Sprintf("there is no namespace %q here", service.Namespace)
	case source.State == liveness.Gone:
		return source.Cluster + " is gone"
	}
	return "the controller has not written it (yet)"
}

// ports are those of the import, for people.
func (e *Explanation) ports() []string {
	if e.Import == nil {
		return nil
	}
	return e.Import.Ports
}

func isTrue(value *bool) bool { return ptr.Deref(value, false) }
