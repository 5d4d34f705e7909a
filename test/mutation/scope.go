// SPDX-License-Identifier: Apache-2.0

package main

// networks are the scenarios in which clusters are in different networks.
const networks = "-run=TestScenarios/network " + simulation

// scoping are mistakes in what clusters an export is for.
var scoping = []mutant{
	{
		file:        "controller/export/slices.go",
		text:        `text != "" && !decoded.clusters.Selects(r.from.Reader, r.from.Reader)`,
		replacement: `text != "" && false`,
		harm:        "clusters import what is not for them",
	},
	{
		file:        "controller/export/service.go",
		text:        `_, misplaced := elsewhere[AnnotationClusters]; misplaced {`,
		replacement: `_ = elsewhere; false {`,
		harm:        "an export whose choice of clusters is misplaced is for all clusters",
	},
	{
		file:        "controller/export/service.go",
		text:        `found.addFor(key, ReasonMisplacedKey,`,
		replacement: `new(problems).addFor(key, ReasonMisplacedKey,`,
		harm:        "a misplaced border has no effect, and nothing says so",
	},
	{
		file:        "controller/scope/selector.go",
		text:        `if isList(part) {`,
		replacement: `if part == "" {`,
		harm:        "ids separated by commas select no cluster, and nothing says so",
	},
	{
		file:        "controller/export/snapshot.go",
		text:        `out.Clusters != "" {`,
		replacement: `out.Clusters == "" {`,
		harm:        "a cluster imports what is not for it",
		first:       "-run=TestScenarios/an_export_is_for_chosen " + simulation,
	},
	{
		file:        "controller/reconciler/reconciler.go",
		text:        `r.Properties.Handle(r.propertiesChanged)`,
		replacement: `r.Properties.Handle(func() {})`,
		harm:        "a cluster whose properties changed keeps what is no longer for it",
		first:       "-run=TestScenarios/an_export_is_for_chosen " + simulation,
	},
	{
		file:        "controller/scope/accept.go",
		text:        `case own != nil && own.Accepts(service), own == nil && (labelled || a.Accept.Accepts(service)):`,
		replacement: `case own == nil, own.Accepts(service):`,
		harm:        "members contribute what --accept does not have",
		first:       "-run=TestScenarios/contributions_are_refused " + simulation,
	},
	{
		file:        "controller/scope/accept.go",
		text:        `own == nil && (labelled ||`,
		replacement: `(labelled ||`,
		harm:        "the label of a namespace, or --accept, widens what a member was limited to",
	},
	{
		file:        "controller/reconciler/input.go",
		text:        `continue // its copies end, as if the export was withdrawn`,
		replacement: ``,
		harm:        "a member contributes what it may not",
		first:       "-run=TestScenarios/contributions_are_refused " + simulation,
	},
	{
		file:        "controller/memberstate/description.go",
		text:        `_ = d.receive(accepted)`,
		replacement: ``,
		harm:        "a restart forgets the properties of a silent cluster",
	},
	{
		file:        "controller/scope/properties.go",
		text:        `return nil, nil`,
		replacement: `return map[string]string{}, nil`,
		harm:        "a cluster of unknown properties is selected by what it is not",
		first:       "-run=TestUnknownProperties " + simulation,
	},
	{
		file:        "controller/memberstate/description.go",
		text:        `if parsed, _ := scope.ParseProperties(d.heard); parsed != nil {`,
		replacement: `if parsed, _ := scope.ParseProperties(d.heard); true {`,
		harm:        "a downgrade lets a cluster of another set contribute to this one",
	},
	{
		file:        "controller/memberstate/tracker.go",
		text:        `t.set != "" && m.set != "" && t.set != m.set`,
		replacement: `false`,
		harm:        "a cluster of another set contributes to this one",
		first:       "-run=TestScenarios/a_member_is_of_another_set " + simulation,
	},
	{
		file:        "cmd/kubectl-clusterset/setup/join.go",
		text:        `if c.Config.Insecure {`,
		replacement: `if false {`,
		harm:        "join keeps a certificate authority that another server gave",
	},
	{
		file:        "cmd/kubectl-clusterset/setup/cidrs.go",
		text:        `!pod.Spec.HostNetwork && !Covers`,
		replacement: `false && !Covers`,
		harm:        "join refuses the endpoints of a CNI that ignores the ranges of nodes",
	},
	{
		file:        "controller/export/endpoint.go",
		text:        `if r.owns != nil && r.owns(canonical[0], r.exposed) {`,
		replacement: `if false {`,
		harm:        "a member leads clients to the nodes and the API server of their cluster",
		first:       "-run=TestScenarios/a_member_has_addresses " + simulation,
	},
	{
		file:        "controller/export/slices.go",
		text:        `if !r.from.Copies && (decoded.Slice.Network == r.from.Network) == (decoded.Slice.Exposed != "") {`,
		replacement: `if false {`,
		harm:        "clients connect to addresses of pods in another network, which may be those of other pods here",
		first:       networks,
	},
	{
		file:        "controller/export/slices.go",
		text:        `if !r.from.Copies && (decoded`,
		replacement: `if (decoded`,
		harm:        "a cluster that moves to another network forgets what silent members have, and imports get other IPs",
		first:       networks,
	},
	{
		file:        "controller/export/expose.go",
		text:        `view.KeepExposed = true`,
		replacement: `view.KeepExposed = false`,
		harm:        "a controller that starts withdraws its nodes from other networks until it has listed them",
	},
	{
		file:        "controller/merge/slices.go",
		text:        `delete(object.Labels, export.LabelService)`,
		replacement: ``,
		harm:        "DNS of a cluster answers with what is for clusters of other networks",
		first:       networks,
	},
	{
		file:        "controller/export/expose.go",
		text:        `conditions := best[name]`,
		replacement: `conditions := Conditions(true, true, false)`,
		harm:        "clients of other networks connect to a node without a ready pod, which drops what they send",
	},
	{
		file:        "controller/export/spec.go",
		text:        `case address.Is4():`,
		replacement: `case address.IsValid():`,
		harm:        "the IPv6 address of a node is among the IPv4 endpoints of a service",
	},
	{
		file:        "controller/export/expose.go",
		text:        `if ptr.Deref(conditions.Ready, false) && e.settles(view, name) {`,
		replacement: `if false {`,
		harm:        "clients of other networks connect to a node whose kube-proxy does not serve its first ready pod yet",
	},
	{
		file:        "controller/export/expose.go",
		text:        `if len(targets) == 0 || len(targets) < len(slice.Targets) {`,
		replacement: `if false {`,
		harm:        "clients of other networks connect to a node, which serves none of the ports of the pod that they mean",
	},
	{
		file:        "controller/export/expose.go",
		text:        `if !node.Ready {`,
		replacement: `if false {`,
		harm:        "clients of other networks connect to a node that is down",
	},
	{
		file:        "controller/export/expose.go",
		text:        `service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal &&`,
		replacement: ``,
		harm:        "a node without a ready pod passes connections on, and counts as ready",
	},
	{
		file:        "cmd/kubectl-clusterset/command/set.go",
		text:        `if args[0] == "" {`,
		replacement: `if false {`,
		harm:        "an unset variable removes all members",
	},
	{
		file:        "cmd/kubectl-clusterset/setup/coredns.go",
		text:        `err := o.answered(ctx, chart.Namespace, chart.Spec.Selector)`,
		replacement: `err := error(nil)`,
		harm:        "CoreDNS forwards the zone to a CoreDNS that does not serve it",
	},
	{
		file:        "cmd/kubectl-clusterset/setup/credential.go",
		text:        `if err := p.try(ctx, token, at); err != nil {`,
		replacement: `if err := error(nil); err != nil {`,
		harm:        "a credential that the source rejects replaces one that works",
	},
}
