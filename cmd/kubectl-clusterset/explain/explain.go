// SPDX-License-Identifier: Apache-2.0

// Package explain explains what a service resolves to in a cluster, and why. It
// reads facts, applies the code of the controller and of the plugin to them, and
// sends no requests.
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

// DefaultZone is the zone of the set unless a flag sets another.
const DefaultZone = "clusterset.local"

// An Explanation is that of one service in one cluster.
type Explanation struct {
	Service string `json:"service"`
	Cluster string `json:"cluster"`
	Context string `json:"context"`
	// Name is the DNS name that clients resolve.
	Name string `json:"name"`
	// Summary is one or two sentences.
	Summary string `json:"summary"`
	// Import is nil if the service is not imported.
	Import  *Import  `json:"import,omitempty"`
	Exports []Export `json:"exports"`
	// Ranked reports whether the first export wins conflicts by the rank of its
	// cluster instead of its age.
	Ranked     bool       `json:"ranked,omitempty"`
	Properties []Property `json:"properties"`
	// Preference is nil if the service is not imported.
	Preference *Preference `json:"preference,omitempty"`
	Endpoints  []Endpoint  `json:"endpoints"`
	// Server is the DNS server that was queried, empty if none was; Answers are its answers.
	Server   string    `json:"server,omitempty"`
	Answers  []Answer  `json:"answers"`
	Problems []Problem `json:"problems"`

	now       time.Time
	namespace string
	// zone and system are the flags --zone and --system-namespace for suggested
	// commands, each with a leading space, or empty for the default.
	zone, system string
	resolver     *resolver
}

// An Import is the ServiceImport of the cluster.
type Import struct {
	Type   string   `json:"type"`
	IPs    []string `json:"ips"`
	Ports  []string `json:"ports"`
	Reason string   `json:"reason"`
}

// An Export is the export of one cluster.
type Export struct {
	Cluster string       `json:"cluster"`
	Since   *metav1.Time `json:"since,omitempty"`
	// State is fresh, stale or gone, and whether it is drained or invalid.
	State string `json:"state"`
	// Used, Demoted and Other count its endpoints by their state in this cluster.
	Used    int `json:"used"`
	Demoted int `json:"demoted"`
	Other   int `json:"other"`
	// Rules are what decided which of its endpoints are used: its tier, border, weight and saturation. With weights, the
	// last of them is its share of the endpoints that are used.
	Rules []string `json:"rules,omitempty"`
}

// A Property is a property of the import, and the cluster whose export sets it.
type Property struct {
	Field string `json:"field"`
	Value string `json:"value"`
	From  string `json:"from"`
	// Dissent has the conflicting values, such as "west: Headless".
	Dissent []string `json:"conflicts,omitempty"`
}

// States of an endpoint.
const (
	Used     = "used"
	Demoted  = "demoted"
	Waiting  = "waiting" // ready, but hints put others first
	NotReady = "not ready"
	Unused   = "unused"
	Refused  = "refused"
	NotHere  = "not imported"
	Outside  = "outside"
)

// An Endpoint is one address behind the service.
type Endpoint struct {
	Address string `json:"address"`
	Cluster string `json:"cluster"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
	// Zone is empty if unknown.
	Zone string `json:"zone,omitempty"`
	// HintedFor are the local zones and nodes in its hints; empty without hints.
	HintedFor string `json:"hintedFor,omitempty"`
	// SRV is the priority and weight of its SRV records; empty if it has none.
	SRV string `json:"srv,omitempty"`
}

// An Answer is that of DNS, with the expected one.
type Answer struct {
	dns.Answer
	// Wrong reports whether the records differ from Expected. Part reports whether
	// they are correct, but only some of Expected.
	Wrong    bool     `json:"wrong,omitempty"`
	Part     bool     `json:"part,omitempty"`
	Expected []string `json:"expected"`
}

// A Problem is something that an administrator may want to fix.
type Problem struct {
	What string `json:"what"`
	// Fix is a command, or a sentence with instructions.
	Fix string `json:"fix,omitempty"`
}

// Of explains a service in a cluster. facts.Ask must have read its members.
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
	e.resolver = newResolver(f, service, strings.TrimSuffix(zone, ".")+".", serviceImport)
	e.imported(serviceImport)
	e.properties(account)
	roles := f.Roles(service, sources)
	for i := range sources {
		e.export(f, service, &sources[i], serviceImport, roles[sources[i].Cluster])
	}
	if serviceImport != nil && serviceImport.Spec.Type != v1beta1.Headless {
		e.wait()
	}
	e.count()
	e.shares(roles, serviceImport)
	records := e.resolver.targets()
	for i := range e.Endpoints {
		e.Endpoints[i].SRV = records[e.Endpoints[i].Address]
	}
	e.byPrecedence(account.Precedence)
	e.problems(f, service, sources, serviceImport, account)
	if len(account.Precedence) > 0 {
		e.limits(f, service, account.Precedence[0], serviceImport)
		e.prefers(f, service, account.Precedence[0], serviceImport)
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
	e.Import = &Import{
		Type: string(serviceImport.Spec.Type), IPs: append([]string{}, serviceImport.Spec.IPs...),
		Ports: []string{}, Reason: "Unknown",
	}
	for _, port := range serviceImport.Spec.Ports {
		e.Import.Ports = append(e.Import.Ports, status.PortText(port))
	}
	if ready := meta.FindStatusCondition(serviceImport.Status.Conditions,
		string(v1beta1.ServiceImportConditionReady)); ready != nil {
		e.Import.Reason = ready.Reason
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

// byPrecedence sorts exports and endpoints by the precedence of the clusters in
// the merge. Clusters that contribute nothing come last.
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
}

func compareAddresses(a, b string) int {
	left, err := netip.ParseAddr(a)
	right, otherErr := netip.ParseAddr(b)
	if err != nil || otherErr != nil {
		return strings.Compare(a, b)
	}
	return left.Compare(right)
}

// export adds the export of one cluster and its endpoints.
func (e *Explanation) export(f *facts.Facts, service types.NamespacedName, source *facts.Source,
	serviceImport *v1beta1.ServiceImport, role merge.Role,
) {
	out := Export{Cluster: source.Cluster, State: e.state(source), Rules: role.Rules}
	view := source.View
	if view == nil {
		view = source.Published
	}
	if view != nil && !view.Absent() {
		out.Since = &metav1.Time{Time: view.Spec.Created}
	}
	e.Endpoints = append(e.Endpoints, e.endpoints(f, service, source, view, serviceImport, role)...)
	e.Exports = append(e.Exports, out)
}

func (e *Explanation) state(source *facts.Source) string {
	text := source.State.String()
	if source.Drained {
		text += ", drained"
	}
	switch {
	case source.Invalid != nil:
		text = "not exported: " + source.Invalid.Reason
	case source.Refused != "":
		text = "refused: " + source.Refused
	case source.Chosen != "":
		text = "not chosen: it is for " + source.Chosen
	}
	return text
}

// endpoints returns the state of each endpoint of a cluster. The local slices are
// in effect; the view is what the cluster itself publishes.
func (e *Explanation) endpoints(f *facts.Facts, service types.NamespacedName, source *facts.Source, view *export.View,
	serviceImport *v1beta1.ServiceImport, role merge.Role,
) []Endpoint {
	said := map[string]bool{}
	if source.Outside && source.Published != nil {
		view = source.Published // copies have no endpoints
	}
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
			state, why := e.endpoint(source, slice, endpoint, said, serviceImport, role)
			for _, address := range endpoint.Addresses {
				here[address] = true
				found = append(found, Endpoint{
					Address: address, Cluster: source.Cluster, State: state, Reason: why,
					Zone: ptr.Deref(endpoint.Zone, ""), HintedFor: hintText(endpoint.Hints),
				})
			}
		}
	}
	for address := range said {
		if !here[address] && source.Outside {
			found = append(found, Endpoint{
				Address: address, Cluster: source.Cluster, State: Outside, Reason: strings.Join(role.Rules, ", "),
			})
		} else if !here[address] {
			found = append(found, Endpoint{
				Address: address, Cluster: source.Cluster, State: NotHere, Reason: e.notHere(f, service, source),
			})
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
		found = append(found, Endpoint{
			Address: strings.Trim(address, `"`), Cluster: source.Cluster, State: Refused, Reason: why,
		})
	}
	return found
}

// endpoint returns the state of an endpoint in a local slice, and the reason.
func (e *Explanation) endpoint(source *facts.Source, slice *discoveryv1.EndpointSlice, endpoint *discoveryv1.Endpoint,
	said map[string]bool, serviceImport *v1beta1.ServiceImport, role merge.Role,
) (state, why string) {
	headless := serviceImport != nil && serviceImport.Spec.Type == v1beta1.Headless
	switch ready := ptr.Deref(endpoint.Conditions.Ready, true); {
	case ready && !headless && len(slice.Ports) == 0:
		return Unused, "the Service in " + source.Cluster + " has none of the imported ports (" +
			strings.Join(e.ports(), ", ") + ")"
	case ready && source.Drained:
		return Used, source.Cluster + " is drained, but no other cluster has a ready endpoint"
	case ready && source.Demoted():
		return Used, judged(source) + ", but no other cluster has a ready endpoint"
	case ready:
		return Used, "ready"
	case said[endpoint.Addresses[0]] && source.Demoted():
		reason := judged(source)
		if source.Drained {
			reason = source.Cluster + " is drained"
		}
		return Demoted, reason + ", and another cluster has a ready endpoint"
	case said[endpoint.Addresses[0]] && isTrue(endpoint.Conditions.Terminating) && len(role.Rules) > 0:
		return Demoted, strings.Join(role.Rules, ", ") + ", and endpoints that come before are ready"
	case isTrue(endpoint.Conditions.Terminating):
		return NotReady, "terminating"
	}
	return NotReady, "not ready in " + source.Cluster
}

// judged tells why a cluster that is not drained is demoted.
func judged(source *facts.Source) string {
	if source.PodsUnreachable() {
		return "the pods of " + source.Cluster + " are not reached (rule PodsUnreachable)"
	}
	return source.Cluster + " is " + source.State.String()
}

func (e *Explanation) notHere(f *facts.Facts, service types.NamespacedName, source *facts.Source) string {
	switch {
	case f.Namespaces[service.Namespace] == nil:
		return fmt.Sprintf("namespace %q does not exist in %s", service.Namespace, f.ID)
	case source.State == liveness.Gone:
		return source.Cluster + " is gone"
	}
	return "not written by the controller yet"
}

// ports are those of the import, as text.
func (e *Explanation) ports() []string {
	if e.Import == nil {
		return nil
	}
	return e.Import.Ports
}

func isTrue(value *bool) bool { return ptr.Deref(value, false) }
