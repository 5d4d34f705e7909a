// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
)

// A mutant is a plausible mistake in the code.
type mutant struct {
	file string
	// harm is the consequence for users.
	harm, text, replacement string
	// first is a pattern of the simulation tests that should detect the mutant; empty means the unit tests of the package.
	first string
}

// at returns a mutant of a file.
func at(file, harm, text, replacement string, first ...string) mutant {
	return mutant{file, harm, text, replacement, strings.Join(first, "|")}
}

// String names the mutant by its file and harm.
func (m mutant) String() string { return m.file + ": " + m.harm }

// mutants are all mutants.
var mutants = slices.Concat(reading, judging, merging, deciding, writing, scoping, probing, trusting)

// reading are mistakes in requests to members, and in the heartbeat.
var reading = []mutant{
	at("controller/member/connection.go", "a member sends all its EndpointSlices, not those that it exports",
		`v1beta1.LabelSourceCluster + "=" + m.cluster`, `v1beta1.LabelSourceCluster`),
	at("controller/member/connection.go", "all Leases of a member are read, for which the credential has no right",
		`fields.OneTermEqualSelector(metav1.ObjectNameField, HeartbeatLease)`, `fields.Everything()`),
	at("controller/member/heartbeat.go", "a member whose controller died during an outage is fresh after it",
		`(!listed || now.Sub(m.looked) < recent) && `, ``),
	at("controller/placement/settings.go", "an empty template of allowed-clusters sends traffic out of its region",
		`if !restricted {`, `if !restricted || text == "" {`),
	at("controller/limits/store.go",
		"a controller that restarts while a member is away removes what the member exports: its copies do not speak for it",
		`return published, s.synced && `, `return published, `),
	at("controller/reconciler/input.go", "what a member that was not read yet exported before is removed",
		`verdict.Keep = verdict.Keep || !complete`, `_ = complete`, "TestScenarios/allowed_clusters_are_lifted"),
	at("controller/export/slices.go",
		"a member that was restored from an old backup, or is another cluster, takes its exports away at once",
		`if from.Keep {`, `if false {`, "TestScenarios/most_exports_are_lost"),
	at("controller/limits/store.go", "a service that exceeds a limit disappears instead of staying as it was",
		`s.synced && !is.withheld`, `s.synced`),
	at("controller/memberstate/tracker.go", "the next list of a member that lost its exports takes them away for a moment",
		`	defer t.mu.Unlock()
	read()
`, `	t.mu.Unlock()
	read()
	t.mu.Lock()
	defer t.mu.Unlock()
`),
	at("controller/memberstate/tracker.go", "a list that lost the exports is used before it is judged",
		`t.update(from.Cluster(), from, func(`, "show()\n\tt.update(from.Cluster(), from, func("),
	at("controller/reconciler/input.go", "losing contact with a cluster removes its endpoints",
		`verdict.State == liveness.Gone`, `verdict.State != liveness.Fresh`, "TestScenarios/a_member_is_silent"),
	at("controller/reconciler/input.go", "traffic stays with a cluster that fell silent",
		`Demote: verdict.Demote, Rank`, `Rank`, "TestScenarios/a_member_is_silent"),
	at("controller/reconciler/input.go", "a cluster that is drained keeps its traffic",
		`own.Demote = namespace.Annotations[memberstate.AnnotationDrain] == "true"`,
		`_ = namespace.Annotations[memberstate.AnnotationDrain]`, "TestScenarios/a_member_is_drained"),
	at("controller/memberstate/tracker.go", "a controller that was frozen takes endpoints of members away",
		`min(now.Sub(t.ticked), liveness.HeartbeatInterval)`, `now.Sub(t.ticked)`),
	at("controller/memberstate/tracker.go", "clusters send traffic to a member that asked to be drained",
		`m.Drained = m.Heartbeat.Drained || annotations[AnnotationDrain] == "true"`, `m.Drained = annotations[AnnotationDrain] == "true"`,
		"TestScenarios/a_member_is_drained"),
	at("controller/reconciler/input.go", "a slice that cannot be understood takes the last endpoints away",
		`published, copies[m.Cluster()])`, `published, nil)`),
	at("controller/reconciler/reconciler.go", "a cluster whose exports are not known looks alive",
		`return "ServiceExports"`, `return ""`, "TestScenarios/CRDs_are_deleted"),
	at("controller/controller.go", "a cluster without the MCS API looks alive",
		`Late: r.Late,`, `Late: r.Gate.Late,`, "TestScenarios/CRDs_are_deleted"),
	at("controller/reconciler/input.go", "the import goes while a Service is replaced",
		`view != nil && (!view.Absent() || keepsImport(of))`, `view != nil && !view.Absent()`,
		"TestScenarios/an_export_has_no_Service"),
	at("controller/reconciler/echoes.go", "a pass that read stale caches is the last one",
		`	delete(e.written, service)
	e.seen`, `	e.seen`),
	at("controller/reconciler/echoes.go", "what others change right after the controller stays as they left it",
		`due = !written.Has(shown)`, `due = written == nil`),
	at("controller/reconciler/echoes.go", "what others change before the answer to a write comes stays as they left it",
		`return !written.IsSuperset(seen)`, `return false`),
	at("controller/reconciler/handlers.go", "what others delete right after the controller wrote it stays away",
		`version.ResourceVersion = ""`, `_ = version`),
	at("controller/reconciler/queue.go", "a service that changes all the time takes the processor from all others",
		`min(restAtMost, max(restAtLeast, restTimes*took))`, `0`),
	at("controller/reconciler/turns.go", "a namespace whose writes hang stops all others",
		`== most`, `== 1000`),
	at("controller/reconciler/queue.go", "the controller and another writer revert each other without a pause",
		`of.passes > limitedAtOnce`, `false`),
	at("controller/limits/store.go", "what a restored etcd says again under an old resourceVersion is not seen",
		`old != nil && old.packed.Equal(is.packed)`,
		`old != nil && old.packed.GetObjectMeta().GetResourceVersion() == published.ResourceVersion`),
	at("controller/member/publishers.go", "nobody asks whether a list that lacks most exports is to be believed",
		`m.set.config.Tracker.Listed(m, uid, list.Services(), func() { changed = m.Show(list) })`, `changed = m.Show(list)`),
	at("controller/member/heartbeat.go", "a Lease that nobody renews any more counts as a heartbeat with each list",
		`LeaseRead(m, is, renewed)`, `LeaseRead(m, is, renewed || true)`, "TestSilence"),
	at("controller/member/heartbeat.go", "a cluster that was restored from a backup and runs no controller counts as alive once",
		`lease.ResourceVersion != m.resourceVersion && (err != nil || order > 0)`,
		`lease.ResourceVersion != m.resourceVersion && (err == nil || order > 0)`),
}

// judging are mistakes in which members are believed.
var judging = []mutant{
	at("controller/memberstate/leases.go", "a restart believes a member again that was silent before",
		`			Before:   liveness.ParseState(left[StateAnnotation]),
`, ``),
	at("controller/memberstate/leases.go", "a restart believes another cluster under a known id at once",
		`			KnownUID: left[member.HeartbeatUIDAnnotation],
`, ``),
	at("controller/liveness/judge.go", "heartbeats on an older connection vouch for the list of another cluster",
		`member.ListedUID != arrivals.UID`, `false`),
	at("controller/memberstate/tracker.go", "another cluster under a known id is believed at once",
		`if is.Token == "" && !m.Mistaken`, `if !m.Mistaken`),
	at("controller/memberstate/tracker.go", "a list that lacks exports is believed before it is known whose it is",
		`if lacking > 0 {`, `if lacking > 0 && false {`),
	at("controller/memberstate/tracker.go", "a member that lost most exports in one list is believed at once",
		`		case m.Lost.IsZero() || lacking`, `		case m.Lost.IsZero() && before < 0 || lacking`),
	at("controller/memberstate/tracker.go", "what confirms the loss of a few exports confirms the later loss of all",
		` || lacking > m.lacking`, ``),
	at("controller/memberstate/tracker.go", "what is judged of a member changes nothing until something else does",
		`		t.changed(is.Cluster)
`, ``),
	at("controller/liveness/judge.go", "failover takes three times as long as documented",
		`gapFrom()) >= limits.StaleAfter:`, `gapFrom()) >= 3*limits.StaleAfter:`),
	at("controller/liveness/judge.go", "traffic stays with a cluster that fell silent",
		`verdict.Demote = verdict.State != Fresh || member.Drained`, `verdict.Demote = member.Drained`),
	at("controller/liveness/judge.go", "a list that lost nine exports of ten is believed at once",
		`return after == 0 && before > 0 || before >= 3 && 2*after < before`, `return after == 0 && before > 0`),
	at("controller/liveness/limits.go", "traffic follows a member that comes and goes",
		`return len(f) == flaps && `, `return len(f) > 1000 && `),
	at("controller/liveness/judge.go", "what another cluster exports under a known id replaces the endpoints",
		`		v.Keep, v.Token = true, arrivals.UID
`, `		v.Token = arrivals.UID
`),
	at("controller/liveness/judge.go", "a list that lacks exports is believed before it is known whose it is",
		`v.Keep = !arrivals.Looked.After(member.Shrunk) && !member.Shrunk.IsZero()`, `v.Keep = false`),
}
