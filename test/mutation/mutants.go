// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// A mutant is a mistake that somebody could make.
type mutant struct {
	file, text, replacement string
	// harm is what users would have of it.
	harm string
	// first are the arguments of go test for what most probably notices; empty for the unit tests of the package.
	first string
}

// String names the mutant by what it does.
func (m mutant) String() string { return m.file + ": " + m.harm }

// mutants are all of them.
var mutants = slices.Concat(reading, judging, merging, deciding, writing, scoping, probing, trusting)

// reading are mistakes in what is asked of members, and what speaks for them.
var reading = []mutant{
	{
		file:        "controller/member/member.go",
		text:        `v1beta1.LabelSourceCluster + "=" + m.cluster`,
		replacement: `v1beta1.LabelSourceCluster`,
		harm:        "a member sends all its EndpointSlices, not those that it exports",
	},
	{
		file:        "controller/member/member.go",
		text:        `fields.OneTermEqualSelector(metav1.ObjectNameField, HeartbeatLease)`,
		replacement: `fields.Everything()`,
		harm:        "all Leases of a member are read, for which the credential has no right",
	},
	{
		file: "controller/reconciler/input.go",
		text: `Complete: m.Synced(),`, replacement: `Complete: m.Synced() || !withheld,`,
		harm:  "a controller that restarts while a member is away removes what the member exports: its copies do not speak for it",
		first: "-run=TestScenarios/a_border_is_lifted " + simulation,
	},
	{
		file: "controller/liveness/view.go",
		text: `case v.Keep || !e.Complete:`, replacement: `case !e.Complete:`,
		harm:  "a member that was restored from an old backup, or is another cluster, takes its exports away at once",
		first: "-run=TestScenarios/most_exports_are_lost " + simulation,
	},
	{
		file: "controller/reconciler/input.go",
		text: `e.Complete = e.Complete && !withheld && !m.Withheld(service)`, replacement: `_ = withheld`,
		harm: "a service that exceeds a limit disappears instead of staying as it was",
	},
	{
		file: "controller/liveness/view.go",
		text: `case v.State == Gone:`, replacement: `case v.State != Fresh:`,
		harm:  "losing contact with a cluster removes its endpoints",
		first: "-run=TestScenarios/a_member_is_silent " + simulation,
	},
	{
		file: "controller/reconciler/input.go",
		text: `Demote: verdict.Demote, Rank`, replacement: `Rank`,
		harm:  "traffic stays with a cluster that fell silent",
		first: "-run=TestScenarios/a_member_is_silent " + simulation,
	},
	{
		file:        "controller/reconciler/input.go",
		text:        `own.Demote = namespace.Annotations[memberstate.AnnotationDrain] == "true"`,
		replacement: `_ = namespace.Annotations[memberstate.AnnotationDrain]`,
		harm:        "a cluster that is drained keeps its traffic",
		first:       "-run=TestScenarios/a_member_is_drained " + simulation,
	},
	{
		file:        "controller/memberstate/tracker.go",
		text:        `m.Drained = m.drains || annotations[AnnotationDrain] == "true"`,
		replacement: `m.Drained = annotations[AnnotationDrain] == "true"`,
		harm:        "clusters send traffic to a member that asked to be drained",
		first:       "-run=TestScenarios/a_member_is_drained " + simulation,
	},
	{
		file:        "controller/liveness/view.go",
		text:        `view, problems = export.FromSlices(e.Source, e.Service, e.Published, previous)`,
		replacement: `_ = previous`,
		harm:        "a slice that cannot be understood takes the last endpoints away",
	},
	{
		file:        "controller/reconciler/reconciler.go",
		text:        `return "ServiceExports"`,
		replacement: `return ""`,
		harm:        "a cluster whose exports are not known looks alive",
	},
	{
		file:        "controller/controller.go",
		text:        `Inputs: r,`,
		replacement: `Inputs: r.Gate,`,
		harm:        "a cluster without the MCS API looks alive",
		first:       "-run=TestScenarios/CRDs_are_deleted " + simulation,
	},
	{
		file:        "controller/reconciler/input.go",
		text:        `view != nil && (!view.Absent() || keepsImport(g.Cluster, in.Existing))`,
		replacement: `view != nil && !view.Absent()`,
		harm:        "the import goes while a Service is replaced",
		first:       "-run=TestScenarios/an_export_has_no_Service " + simulation,
	},
	{
		file: "controller/apply/tracker.go",
		text: `return shown.gone || of.version != shown.GetResourceVersion()`, replacement: `return shown.gone`,
		harm: "what others change right after the controller stays as they left it",
	},
	{
		file: "controller/apply/tracker.go",
		text: `due = t.concerned(service, each) || due`, replacement: `t.concerned(service, each)`,
		harm: "what others change before the answer to a write comes stays as they left it",
	},
	{
		file: "controller/reconciler/queue.go",
		text: `min(restAtMost, max(restAtLeast, restTimes*took))`, replacement: `0`,
		harm: "a service that changes all the time takes the processor from all others",
	},
	{
		file: "controller/reconciler/queue.go",
		text: `of.passes > othersAtOnce`, replacement: `false`,
		harm: "the controller and another writer revert each other without a pause",
	},
	{
		file: "controller/local/copies.go",
		text: `used := c.used[service]`, replacement: `used := c.used[types.NamespacedName{}]`,
		harm: "who deletes copies while their cluster is away takes its endpoints away for good",
	},
	{
		file: "controller/export/packed.go",
		text: `return a == b || a.ResourceVersion == b.ResourceVersion && Pack(a).Equal(Pack(b))`, replacement: `return a == b || a.ResourceVersion == b.ResourceVersion || Pack(a).Equal(Pack(b))`,
		harm: "what a restored etcd says again under an old resourceVersion is not seen",
	},
	{
		file: "controller/member/member.go",
		text: ` || order < 0`, replacement: ` || order < -1`,
		harm: "a watch is resumed in an etcd that was restored from a backup, and what it lost stays",
	},
	{
		file: "controller/member/member.go",
		text: ` || *listed != "" && uid != *listed`,
		harm: "a watch is resumed in another cluster at the same address, and slices of both mix",
	},
	{
		file: "controller/member/slices.go",
		text: `s.listing(slices.Collect(`, replacement: `_ = (slices.Collect(`,
		harm: "nobody asks whether a list that lacks most exports is to be believed",
	},
	{
		file: "controller/member/heartbeat.go",
		text: `is, changed && !first)`, replacement: `is, changed || !first || first)`,
		harm:  "a Lease that nobody renews any more counts as a heartbeat with each list",
		first: "-run=TestSilence " + simulation,
	},
}

// judging are mistakes in who is believed.
var judging = []mutant{
	{
		file: "controller/memberstate/leases.go",
		text: `			Before:   liveness.ParseState(left[StateAnnotation]),
`, replacement: ``,
		harm: "a restart believes a member again that was silent before",
	},
	{
		file: "controller/memberstate/leases.go",
		text: `			KnownUID: left[member.HeartbeatUIDAnnotation],
`, replacement: ``,
		harm: "a restart believes another cluster under a known id at once",
	},
	{
		file: "controller/memberstate/tracker.go",
		text: `if m.KnownUID == "" && !mistaken {`, replacement: `if !mistaken {`,
		harm: "another cluster under a known id is believed at once",
	},
	{
		file: "controller/memberstate/tracker.go",
		text: `if lacking > 0 {`, replacement: `if lacking > 0 && false {`,
		harm: "a list that lacks exports is believed before it is known whose it is",
	},
	{
		file: "controller/memberstate/tracker.go",
		text: `		case m.Lost.IsZero():
`, replacement: `		case m.Lost.IsZero() && before < 0:
`,
		harm: "a member that lost most exports in one list is believed at once",
	},
	{
		file: "controller/memberstate/tracker.go",
		text: `			t.handler.VerdictChanged(is.Cluster)
`, replacement: ``,
		harm: "what is judged of a member changes nothing until something else does",
	},
	{
		file: "controller/memberstate/leases.go",
		text: `if !maps.Equal(is, m.memory) {`, replacement: `if m.memory == nil {`,
		harm: "a restart believes a member again that was silent before",
	},
	{
		file: "controller/liveness/judge.go",
		text: `silentFrom()) >= limits.StaleAfter:`, replacement: `silentFrom()) >= 3*limits.StaleAfter:`,
		harm: "failover takes three times as long as documented",
	},
	{
		file:        "controller/liveness/judge.go",
		text:        `verdict.Demote = verdict.State != Fresh || member.Drained`,
		replacement: `verdict.Demote = member.Drained`,
		harm:        "traffic stays with a cluster that fell silent",
	},
	{
		file:        "controller/liveness/judge.go",
		text:        `return after == 0 && before > 0 || before >= 3 && 2*after < before`,
		replacement: `return after == 0 && before > 0`,
		harm:        "a list that lost nine exports of ten is believed at once",
	},
	{
		file: "controller/liveness/limits.go",
		text: `return len(f) == flaps && `, replacement: `return len(f) > 1000 && `,
		harm: "traffic follows a member that comes and goes",
	},
	{
		file: "controller/liveness/judge.go",
		text: `		v.Keep, v.Token = true, arrivals.UID
`, replacement: `		v.Token = arrivals.UID
`,
		harm: "what another cluster exports under a known id replaces the endpoints",
	},
	{
		file:        "controller/liveness/judge.go",
		text:        `v.Keep = !arrivals.Looked.After(member.Shrunk) && !member.Shrunk.IsZero()`,
		replacement: `v.Keep = false`,
		harm:        "a list that lacks exports is believed before it is known whose it is",
	},
}
