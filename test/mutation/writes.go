// SPDX-License-Identifier: Apache-2.0

package main

// merging are mistakes in what clusters agree on.
var merging = []mutant{
	{
		file: "controller/merge/demote.go",
		text: `if endpoint := &slice.Endpoints[j]; isReady(endpoint) {`, replacement: `if endpoint := &slice.Endpoints[j]; true {`,
		harm: "the last resort is demoted in favor of a cluster without a ready endpoint",
	},
	{
		file:        "controller/merge/demote.go",
		text:        `return imported && !c.before(of, served{slice.AddressType, target.Protocol, target.Number})`,
		replacement: `return imported && len(c) == 0`,
		harm:        "endpoints are demoted on a port that no other cluster serves",
	},
	{
		file: "controller/merge/demote.go",
		text: `return covered && lowest < of`, replacement: `return covered && lowest <= of`,
		harm: "a tier demotes itself",
	},
	{
		file:        "controller/merge/demote.go",
		text:        `export.Conditions(false, level != Unused, level != Unused)`,
		replacement: `export.Conditions(false, true, true)`,
		harm:        "endpoints outside of a border are used",
	},
	{
		file:        "controller/merge/derived.go",
		text:        `if imported := observed.ServiceImport; imported != nil {`,
		replacement: `if imported := observed.ServiceImport; imported != nil && len(imported.Spec.IPs) == 0 {`,
		harm:        "an import that its author gave an IP, or that is adopted, gets another one",
	},
	{
		file: "controller/placement/weights.go",
		text: `slices.SortFunc(positions, position.compare)`, replacement: `_ = position.compare`,
		harm: "replicas use other endpoints of a cluster with a weight",
	},
	{
		file:        "controller/placement/conditions.go",
		text:        `case weight > 0 && w.ready[cluster] == 0:`,
		replacement: `case off < 0 && w.ready[cluster] == 0:`,
		harm:        "a share of a cluster that gets no traffic is said to be in effect",
	},
	{
		file: "controller/placement/weights.go",
		text: `float64(n)*scale), 1)`, replacement: `float64(n)*scale), 0)`,
		harm: "a cluster with many pods and a small share comes after all others in SRV answers",
	},
	{
		file: "controller/placement/weights.go",
		text: `if exponent < 5 {`, replacement: `if exponent < 50 {`,
		harm: "each pod that comes or goes rewrites all slices of its cluster",
	},
	{
		file: "controller/placement/srv.go",
		text: ` || from.Demote && len(waiting) > 0 ||`, replacement: ` ||`,
		harm: "clients of SRV records go to silent clusters next",
	},
	{
		file: "controller/placement/srv.go",
		text: `	if len(terminating) > 0 {
`, replacement: `	if false {
`,
		harm: "clients of SRV records go to pods that terminate",
	},
	{
		file: "controller/apply/slices.go",
		text: ` && key != export.AnnotationSRV &&`, replacement: ` &&`,
		harm: "SRV answers keep an order that no export asks for anymore",
	},
	{
		file:        "plugin/multicluster/record/build.go",
		text:        `e.state == object.Waiting && best == object.Waiting`,
		replacement: `false`,
		harm:        "clients of SRV records do not know the clusters that come next",
		first:       "-run=TestScenarios/SRV_answers_have " + simulation,
	},
	{
		file: "controller/placement/placement.go",
		text: `	if own && p.hinted {
`, replacement: `	if false {
`,
		harm: "where hints put a cluster first, nothing is ready when it fails",
	},
	{
		file: "controller/merge/demote.go",
		text: `export.Conditions(false, level != Unused,`, replacement: `export.Conditions(false, false,`,
		harm: "demoted endpoints get no traffic even as the last resort",
	},
	{
		file:        "controller/merge/decide.go",
		text:        `cmp.Or(a.Spec.Created.Compare(b.Spec.Created), cmp.Compare(a.Cluster, b.Cluster))`,
		replacement: `cmp.Or(b.Spec.Created.Compare(a.Spec.Created), cmp.Compare(a.Cluster, b.Cluster))`,
		harm:        "a new export changes the type and the ports of all others",
	},
	{
		file: "controller/merge/decide.go",
		text: `	slices.Sort(clusters)
`, replacement: ``,
		harm: "clusters with the same views write different imports",
	},
	{
		file:        "controller/merge/slices.go",
		text:        `return export.SliceName(view.Cluster, observed.Service, slice.Name, slice.AddressType)`,
		replacement: `return slice.Name`,
		harm:        "a member chooses which slice of this cluster it overwrites",
	},
	{
		file: "controller/merge/slices.go",
		text: `case !foreignService(observed):`, replacement: `default:`,
		harm: "a foreign Service gets the endpoints of this one",
	},
}

// writing are mistakes in what is written, and by whom.
var writing = []mutant{
	{
		file: "controller/apply/slices.go",
		text: `if before != nil && !export.IsManaged(before) {`, replacement: `if before != nil && before.Name == "" {`,
		harm: "a slice that somebody else made is overwritten",
	},
	{
		file: "controller/apply/slices.go",
		text: `waits := !haveImport && cluster`, replacement: `waits := !haveImport && known == nil && cluster`,
		harm: "copies are written without an owner, and stay forever",
	},
	{
		file: "controller/caches.go",
		text: `c.gate.WaitForAll(ctx)`, replacement: `ctx.Err() == nil`,
		harm:  "a replica whose watch broke leads on what it read before, and vouches for it",
		first: "-run=TestStandbyThatCannotRead " + simulation,
	},
	{
		file: "controller/leader.go",
		text: `work, stop := context.WithCancel(leading)`, replacement: `work, stop := context.WithCancel(ctx)`,
		harm: "a replica that lost the Lease goes on writing while another leads",
	},
	{
		file: "controller/leader.go",
		text: `if err != nil || record.HolderIdentity != lock.Identity() {`, replacement: `if err != nil || record.HolderIdentity == "" {`,
		harm: "a replica that stops takes the Lease from the one that leads",
	},
	{
		file: "controller/leader.go",
		text: `	if elector.IsLeader() {
`, replacement: `	if elector.IsLeader() && ctx.Err() == nil {
`,
		harm: "after a rolling update nobody leads until the Lease runs out",
	},
	{
		file: "controller/leader.go",
		text: `defer context.AfterFunc(ctx, stop)()`, replacement: `defer context.AfterFunc(ctx, resign)()`,
		harm: "a replica that stops gives the Lease up before its work has ended",
	},
	{
		file:        "controller/memberstate/leases.go",
		text:        `if lease.Name != LeasePrefix+cluster || lease.Labels[export.LabelManagedBy] != export.Manager {`,
		replacement: `if lease.Name == "" {`,
		harm:        "somebody else's Lease says who a member is",
	},
	{
		file: "controller/local/cluster.go",
		text: `if !ok || service.Spec.ClusterIP == corev1.ClusterIPNone {`, replacement: `if !ok || !export.IsManaged(service) {`,
		harm: "a name resolves to the IP of a Service of somebody else",
	},
	{
		file:        "controller/merge/merge.go",
		text:        `	if imported := result.ServiceImport; waitsForIP(observed, imported) {`,
		replacement: `	if imported := result.ServiceImport; false && waitsForIP(observed, imported) {`,
		harm:        "a headless import that answers becomes one that answers nothing",
	},
	{
		file: "controller/export/slices.go",
		text: `if IsManaged(slice) && slice.DeletionTimestamp == nil {`, replacement: `if IsManaged(slice) {`,
		harm:  "a finalizer of somebody else keeps a withdrawn export alive everywhere",
		first: "-run=TestScenarios/a_published_slice_is_held " + simulation,
	},
	{
		file: "controller/merge/demote.go",
		text: `		endpoints[i].Conditions = export`,
		replacement: `		if level == Unused {
			return nil, nil
		}
		endpoints[i].Conditions = export`,
		harm: "a border that is lifted while a member is silent leaves nothing of it",
	},
}
