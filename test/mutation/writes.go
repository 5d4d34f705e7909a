// SPDX-License-Identifier: Apache-2.0

package main

// merging are mistakes in the result on which clusters must agree.
var merging = []mutant{
	at("controller/merge/demote.go", "the last resort is demoted in favor of a cluster without a ready endpoint",
		`if endpoint := &slice.Endpoints[j]; export.IsReady(endpoint) {`, `if endpoint := &slice.Endpoints[j]; true {`),
	at("controller/merge/demote.go", "endpoints are demoted on a port that no other cluster serves",
		`c[served{slice.AddressType, target.Protocol, target.Number}] >= of`, `len(c) == 0`),
	at("controller/merge/demote.go", "a tier demotes itself",
		`target.Number}] >= of`, `target.Number}] > of`),
	at("controller/merge/demote.go", "endpoints outside of the allowed clusters are used",
		`export.Conditions(false, level != Unused, level != Unused)`, `export.Conditions(false, true, true)`),
	at("controller/merge/derived.go", "an import that its author gave an IP, or that is adopted, gets another one",
		`if imported := observed.ServiceImport; imported != nil {`,
		`if imported := observed.ServiceImport; imported != nil && len(imported.Spec.IPs) == 0 {`),
	at("controller/placement/weigh.go", "replicas use other endpoints of a cluster with a weight",
		`slices.Sorted(maps.Keys(byHash))`, `slices.Collect(maps.Keys(byHash))`),
	at("controller/placement/conditions.go", "a share of a cluster that gets no traffic is said to be in effect",
		`weight > 0 && w.ready[cluster] == 0 || max(off, -off)`, `max(off, -off)`),
	at("controller/placement/weights.go", "a cluster with many pods and a small share comes after all others in SRV answers",
		`float64(n)*scale), 1)`, `float64(n)*scale), 0)`),
	at("controller/placement/weights.go", "each pod that comes or goes rewrites all slices of its cluster",
		`if exponent < 5 {`, `if exponent < 50 {`),
	at("controller/placement/srv.go", "clients of SRV records go to silent clusters next",
		` || from.Demote && len(demoted) > 0 ||`, ` ||`),
	at("controller/placement/srv.go", "clients of SRV records go to pods that terminate",
		`	if len(terminating) > 0 {
`, `	if false {
`),
	at("controller/apply/slices.go", "SRV answers keep an order that no export asks for anymore",
		` && key != export.AnnotationSRV &&`, ` &&`),
	at("plugin/multicluster/record/build.go", "clients of SRV records do not know the clusters that come next",
		`e.state == waiting && best == waiting`, `false`, "TestScenarios/SRV_answers_have"),
	at("controller/placement/placement.go", "where hints put a cluster first, nothing is ready when it fails",
		`	if own && p.hinted {
`, `	if false {
`),
	at("controller/merge/demote.go", "demoted endpoints get no traffic even as the last resort",
		`export.Conditions(false, level != Unused,`, `export.Conditions(false, false,`),
	at("controller/merge/merge.go", "a new export changes the type and the ports of all others",
		`a.View.Spec.Created.Compare(b.View.Spec.Created)`, `b.View.Spec.Created.Compare(a.View.Spec.Created)`),
	at("controller/merge/serviceimport.go", "clusters with the same views write different imports",
		`return cmp.Compare(a.Cluster, b.Cluster)`, `return 0 * cmp.Compare(a.Cluster, b.Cluster)`),
	at("controller/merge/slices.go", "a member chooses which slice of this cluster it overwrites",
		`= export.SliceName(view.Cluster, observed.Service, slice.Name, slice.AddressType)`, `= slice.Name`),
	at("controller/merge/slices.go", "a foreign Service gets the endpoints of this one",
		`case !foreignService(observed):`, `default:`),
}

// writing are mistakes in which objects are written, and by which process.
var writing = []mutant{
	at("controller/apply/slices.go", "nobody learns that a slice of another owner has the name of a published one",
		`(!export.IsManaged(written) || export.ServiceOf(written) != p.observed.Service)`, `false`),
	at("controller/apply/slices.go", "copies are written without an owner, and stay forever",
		`waits := !haveImport && cluster`, `waits := !haveImport && known == nil && cluster`),
	at("controller/controller.go", "a replica whose watch broke leads on what it read before, and vouches for it",
		`c.full, c.gate.Current`, `c.full`, "TestStandbyThatCannotRead"),
	at("controller/leader.go", "a replica that lost the Lease goes on writing while another leads",
		`work, stop := context.WithCancel(leading)`, `work, stop := context.WithCancel(ctx)`),
	at("controller/leader.go", "a replica that stops takes the Lease from the one that leads",
		`if err != nil || record.HolderIdentity != lock.Identity() {`, `if err != nil || record.HolderIdentity == "" {`),
	at("controller/leader.go", "after a rolling update nobody leads until the Lease runs out",
		`	if elector.IsLeader() {
`, `	if elector.IsLeader() && ctx.Err() == nil {
`),
	at("controller/leader.go", "a replica that stops gives the Lease up before its work has ended",
		`defer context.AfterFunc(ctx, stop)()`, `defer context.AfterFunc(ctx, resign)()`),
	at("controller/merge/merge.go", "an import of somebody else is changed for exports without a Service",
		`	case foreign(observed):
		result.Foreign`, `	case foreign(observed) && len(contributions) > 0:
		result.Foreign`),
	at("controller/memberstate/leases.go", "somebody else's Lease says who a member is",
		`case is.Labels[export.LabelManagedBy] != export.Manager:`, `case is == nil:`),
	at("controller/local/cluster.go", "a name resolves to the IP of a Service of somebody else",
		`if !ok || service.Spec.ClusterIP == corev1.ClusterIPNone {`, `if !ok || !export.IsManaged(service) {`),
	at("controller/merge/merge.go", "a headless import that answers becomes one that answers nothing",
		`	if imported := result.ServiceImport; waitsForIP(observed, imported) {`,
		`	if imported := result.ServiceImport; false && waitsForIP(observed, imported) {`, "TestScenarios/types_conflict"),
	at("controller/export/slices.go", "a finalizer of somebody else keeps a withdrawn export alive everywhere",
		`if IsManaged(slice) && slice.DeletionTimestamp == nil {`, `if IsManaged(slice) {`, "TestScenarios/a_published_slice_is_held"),
	at("controller/merge/demote.go", "allowed clusters that are lifted while a member is silent leave nothing of it",
		`		endpoints[i].Conditions = export`, `		if level == Unused {
			return nil, nil
		}
		endpoints[i].Conditions = export`),
}

// deciding are mistakes in the import objects that exports result in.
var deciding = []mutant{
	at("controller/merge/ports.go", "two ports of an import have the same name, and the API server refuses it",
		`for i := 2; taken[free]; i++ {`, `for i := 2; false && taken[free]; i++ {`),
	at("controller/export/service.go", "an export that is being deleted stays in all clusters while a finalizer holds it",
		`case serviceExport.DeletionTimestamp != nil:`, `case false && serviceExport.DeletionTimestamp != nil:`),
	at("controller/liveness/arrivals.go", "after three faults of its own network, a cluster demotes all others for flapping",
		`if a.Missed >= limits.StaleAfter {`, `if at.Sub(from) >= limits.StaleAfter {`),
	at("controller/export/slices.go", "an IPv6 slice that cannot be read takes its last endpoints away",
		`, discoveryv1.AddressTypeIPv6} {`, `} {`),
	at("controller/apply/slices.go", "kube-proxy ignores the slices of an import that was headless",
		`export.LabelHeadless, export.LabelExposed,`, `export.LabelExposed,`),
	at("controller/placement/weights.go", "a cluster with a small weight gets no traffic",
		`min(max((2*weight*scale+of)/(2*of), 1), n)`, `min((2*weight*scale+of)/(2*of), n)`),
	at("controller/scope/selector.go", "a tier of the same region lacks the local cluster while its properties are unknown",
		`return cluster.ID == local.ID || known`, `return known`),
	at("controller/merge/serviceimport.go", "the IP of a dual-stack import changes with the order of the exports' families",
		`export.FamilyOf(known[0])); at > 0`, `export.FamilyOf(known[0])); at > 9`),
	at("controller/merge/merge.go", "a name does not resolve while its import becomes one with an IP",
		`return before != nil && before.Spec.Type`, `return false && before.Spec.Type`, "TestScenarios/types_conflict"),
	at("controller/merge/demote.go", "the last endpoints of a headless service without ports are demoted",
		`v1beta1.Headless && c[served{`, `v1beta1.Headless && of == 0 && c[served{`),
	at("controller/merge/conflict.go", "a conflict of the families of a headless service is not reported",
		`kind == v1beta1.Headless && !clients`, `kind == "" && !clients`),
	at("controller/apply/slices.go", "old slices are deleted although the new ones could not be written",
		`		case err != nil:
			late.add(`, `		case err != nil:
			lateClusters{}.add(`),
}
