// SPDX-License-Identifier: Apache-2.0

package statusz

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/heartbeat"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
	"github.com/clusterset-dns/clusterset-dns/controller/reconciler"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// maxExamined bounds the number of services with refused parts that one answer examines.
const maxExamined = 100

// findings returns the problems that the controller sees.
func (l *Leader) findings() state.Findings {
	found := state.Findings{}
	if reason, message := l.Heartbeat.Doubted(); reason != heartbeat.None {
		found.Fail("heartbeat", kubectl(l.Cluster, "-n %s logs -l app.kubernetes.io/component=controller --prefix --tail=200", l.Namespace),
			"The controller does not renew its heartbeat, so other clusters demote the endpoints of this one: %s.", message)
	}
	failing(&found, l.Failing())
	if !l.Local.Nodes.HasSynced() { // the controller works without this right, but lacks features
		found.Warn("nodes", "Give the controller the rights of deploy/rbac.yaml.", "The controller cannot list the Nodes of %s, so it "+
			"writes no hints, and does not refuse addresses of nodes as endpoints.", l.Cluster)
	}
	for _, problem := range l.Members.Refused() {
		l.refused(&found, problem)
	}
	for _, m := range l.Members.List() {
		l.ofMember(&found, m)
	}
	namespace := l.Local.Namespace(l.Namespace)
	if _, err := member.ParseRank(ptr.Deref(namespace, corev1.Namespace{}).Annotations); err != nil {
		found.Fail("ranks", kubectl(l.Cluster, "annotate namespace %s '%s=<integer from -1000 to 1000>' --overwrite", l.Namespace,
			member.RankAnnotation), "Namespace %s: %v. Exports of %s come last in conflicts.", l.Namespace, err, l.Cluster)
	}
	if reconciler.Standing(namespace).Demote {
		drained(&found, l.Cluster, undrain(l.Cluster, l.Cluster))
	}
	if l.API.Version() != "" {
		l.ofServices(&found)
	}
	return found
}

// drained adds that a cluster is drained.
func drained(found *state.Findings, cluster, fix string) {
	found.Warn("drained", fix, "%s is drained: its endpoints are used only if no other cluster has a ready endpoint.", cluster)
}

// failing adds the services that cannot be written. The controller may lack a right, which no other check finds.
func failing(found *state.Findings, services map[types.NamespacedName]error) {
	if len(services) == 0 {
		return
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(services)), byName)
	found.Fail("services-written", "Do what the error says. If the API server refuses a write, give the controller the rights of "+
		"deploy/rbac.yaml, and look at the quotas and admission webhooks.", "The controller cannot write %s (services that fail: %d): %v.",
		first, len(services), services[first])
}

func byName(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

// refused adds the problem of a credential.
func (l *Leader) refused(found *state.Findings, problem member.Problem) {
	candidate, name, add := problem.Candidate, "credential-usable", found.Fail
	remove := ofSecret(candidate, "cluster id", l.command(candidate, "delete", ""))
	fix := l.join(candidate, candidate.Cluster, "")
	var wrong *member.AnnotationError
	switch m := l.Members.Get(candidate.Cluster); {
	case candidate.Cluster == l.Cluster:
		fix = remove
	case m == nil:
		fix = l.identify(candidate, "<id of the cluster whose API server it names>")
	case m.Candidate().String() != candidate.String(): // its cluster has another one
		name, fix, add = "credential-single", remove, found.Warn
	case errors.As(problem.Err, &wrong):
		fix = l.annotate(candidate, wrong.Key, "<value of "+wrong.Key+">")
	}
	add(name, fix, "The controller does not use %s: %v.", candidate, problem.Err)
}

// ofMember adds the problems of a member.
func (l *Leader) ofMember(found *state.Findings, m *member.Member) {
	id, known := m.Cluster(), l.Tracker.Of(m.Cluster())
	if life := m.Life(); life.Ending(l.Clock.Now()) {
		found.Warn("credential-lasts", l.join(m.Candidate(), id, ""), "The credential of %s was not renewed, and expires at %s.", id,
			life.Expires.UTC().Format(time.RFC3339))
	}
	if problem := m.Problem(); problem != nil {
		fix := "Make sure that " + l.Cluster + " reaches the API server and the controller of " + id + ". If the address in the " +
			"credential is wrong: " + quoted(l.join(m.Candidate(), id, " --server "+contextOf(id)+"=<address of the API server>"))
		switch {
		case apierrors.IsUnauthorized(problem):
			fix = l.join(m.Candidate(), id, "")
		case apierrors.IsForbidden(problem):
			fix = "In " + id + ", give the user of the credential the rights of clusterset-member in deploy/rbac.yaml."
		}
		found.Fail("member-reachable", fix, "The controller cannot read %s: %v.", id, problem)
	}
	if len(m.CIDRs()) == 0 {
		found.Warn("member-confined", l.annotate(m.Candidate(), member.CIDRsAnnotation, "<ranges of its pods>"),
			"%s has no annotation %s, so the endpoints of %s may be at any address.", m.Candidate(), member.CIDRsAnnotation, id)
	}
	if why := m.Exceeded(); why != nil {
		found.Warn("member-limits", "Export less in "+id+", or raise the limit in "+l.Cluster+".",
			"%s exceeds a limit, and the excess is not imported: %v.", id, why)
	}
	l.judged(found, m, known)
	if len(known.ProbedTargets) > 0 && known.Path == liveness.Unknown && known.Verdict.State == liveness.Fresh {
		found.Warn("pods-reached", l.connectivity(id), "No probe target of %s has answered %s yet, so that failing connections to its pods "+
			"are not noticed. Allow connections between the controllers.", id, l.Cluster)
	}
}

// judged adds the reason why a member is not fresh, and whether it is drained.
func (l *Leader) judged(found *state.Findings, m *member.Member, known memberstate.Member) {
	id, verdict := m.Cluster(), known.Verdict
	reason, message := memberstate.Describe(verdict)
	message = strings.TrimSuffix(message, ".")
	switch {
	case verdict.Reason == liveness.ClusterIDMismatch:
		is, fix := known.Heartbeat.Cluster, l.join(m.Candidate(), id, " --server "+contextOf(id)+"=<address of the API server>")
		if is != l.Cluster && l.Members.Get(is) == nil && member.ValidateID(is) == nil {
			fix = l.identify(m.Candidate(), is)
		}
		found.Fail("member-identity", fix,
			"%s connects to the cluster %s, not to %s. The previous exports of %[3]s stay.", m.Candidate(), is, id)
	case reason == memberstate.EventMemberQuarantined:
		fix := "Correct the ClusterProperty clusterset.k8s.io in one of the two clusters."
		if verdict.Token != "" {
			fix = "Verify the exports of the member: `kubectl --context " + contextOf(id) + " get serviceexports -A`. If they are " +
				"correct, confirm them: " + quoted(l.annotate(m.Candidate(), memberstate.AnnotationConfirm, verdict.Token))
		}
		found.Fail("member-quarantined", fix, "%s.", message)
	case known.Path == liveness.Unreachable && verdict.Reason != liveness.NoHeartbeat: // else the whole cluster may be down
		found.Fail("pods-reached", l.connectivity(id), "Connections from %s to the pods of %s fail. %s.", l.Cluster, id, message)
	case reason == "":
	default:
		found.Fail("member-fresh", fmt.Sprintf("Make sure that %s reaches the API server and the controller of %s: "+
			"`kubectl clusterset check --contexts %s,%s`.", l.Cluster, id, contextOf(l.Cluster), contextOf(id)), "%s.", message)
	}
	if known.Drained {
		var in []string
		if known.Heartbeat.Drained {
			in = append(in, id)
		}
		annotated := m.Annotations()[memberstate.AnnotationDrain] == "true"
		if annotated {
			in = append(in, l.Cluster)
		}
		fix := undrain(id, in...)
		if annotated {
			fix = ofSecret(m.Candidate(), "annotation "+memberstate.AnnotationDrain, fix)
		}
		drained(found, id, fix)
	}
}

// connectivity returns the command that tests the connections between the pods of the local cluster and of another one.
func (l *Leader) connectivity(id string) string {
	return "kubectl clusterset test connectivity --contexts " + contextOf(l.Cluster) + "," + contextOf(id)
}

// ofServices adds the problems of exports and imports.
func (l *Leader) ofServices(found *state.Findings) {
	leaving := func(object metav1.Object) bool {
		namespace := l.Local.Namespace(object.GetNamespace())
		return object.GetDeletionTimestamp() != nil || namespace == nil || namespace.DeletionTimestamp != nil
	}
	for _, each := range l.API.Exports.List() {
		if !leaving(each) {
			l.ofExport(found, each)
		}
	}
	zoneless := l.Local.NodesWithoutZone()
	for _, each := range l.API.Imports.List() {
		distribution := ptr.Deref(each.Spec.TrafficDistribution, "")
		if len(zoneless) > 0 && distribution != "" && each.Spec.Type == v1beta1.ClusterSetIP && export.IsManaged(each) {
			found.Warn("zones", kubectl(l.Cluster, "label node %s %s=<zone of the node>", zoneless[0], corev1.LabelTopologyZone),
				"Node %s has no label %s, so its clients do not prefer near endpoints, although %s has trafficDistribution %s.",
				zoneless[0], corev1.LabelTopologyZone, klog.KObj(each).String(), distribution)
			zoneless = nil // once
		}
		if !leaving(each) {
			service := types.NamespacedName{Namespace: each.Namespace, Name: each.Name}
			exported := l.API.Exports.Get(service) != nil || len(l.Members.Publishing(service)) > 0
			ofImport(found, l.Cluster, each, exported)
		}
	}
	lacking := sets.Set[string]{}
	for _, m := range l.Members.List() {
		if l.Tracker.Of(m.Cluster()).Verdict.State != liveness.Fresh {
			continue // its exports may have been withdrawn
		}
		for _, service := range m.Services() {
			if len(validation.IsDNS1123Label(service.Namespace)) == 0 && !l.Denies(service.Namespace) { // administrators copy a command with it
				lacking.Insert(service.Namespace)
			}
		}
	}
	for _, name := range sets.List(lacking) {
		l.ofNamespace(found, name)
	}
	partial := slices.SortedFunc(maps.Keys(l.Partial()), byName)
	for _, service := range partial[:min(len(partial), maxExamined)] {
		l.ofParts(found, l.Look(service))
	}
}

// ofExport adds the problem of an export of the local cluster.
func (l *Leader) ofExport(found *state.Findings, of *v1beta1.ServiceExport) {
	name := klog.KObj(of).String()
	told := meta.FindStatusCondition(of.Status.Conditions, string(v1beta1.ServiceExportConditionValid))
	if told != nil && told.Status == metav1.ConditionFalse {
		found.Fail("exports-valid", withdraw(l.Cluster, name), "%s is not exported: %s", name, told.Message)
	}
	told = meta.FindStatusCondition(of.Status.Conditions, string(v1beta1.ServiceExportConditionConflict))
	if told != nil && told.Status == metav1.ConditionTrue {
		conflict(found, name, told.Message)
	}
}

// conflict adds that exports of a service differ.
func conflict(found *state.Findings, service, message string) {
	found.Warn("exports-agree", "Make the Services and ServiceExports the same in all clusters (a change of the type needs a new Service), "+
		"or withdraw the exports that differ.", "%s: %s", service, message)
}

// ofNamespace adds why a namespace takes no part in the cluster set.
func (l *Leader) ofNamespace(found *state.Findings, name string) {
	if l.Denies(name) {
		found.Warn("namespaces", "Use another namespace, or change --denied-namespaces of the controller.",
			"Namespace %s is on the controller's list of denied namespaces, so nothing is imported into it.", name)
	} else if l.Local.Namespace(name) == nil {
		found.Warn("namespaces", kubectl(l.Cluster, "create namespace %s", name),
			"Namespace %s does not exist, so nothing is imported into it.", name)
	}
}

// ofParts adds the parts of exports that are not imported.
func (l *Leader) ofParts(found *state.Findings, in reconciler.Input) {
	for _, cluster := range slices.Sorted(maps.Keys(in.Problems)) {
		for _, problem := range in.Problems[cluster] {
			fix := "Correct the object in " + cluster + "."
			if m := l.Members.Get(cluster); m != nil && problem.Reason == export.ReasonForeignAddress {
				fix += " If its address is correct: " + extend(m, member.CIDRsAnnotation, "its range")
			}
			found.Fail("endpoints-refused", fix, "Part of %s from %s is not imported: %s.", in.Observed.Service, cluster, problem)
		}
	}
}

// ofImport adds the problems of an import. exported reports whether any cluster exports the service.
func ofImport(found *state.Findings, own string, from *v1beta1.ServiceImport, exported bool) {
	name := klog.KObj(from).String()
	if !export.IsManaged(from) {
		if of := kubectl(own, "-n %s ", from.Namespace); exported {
			found.Fail("imports-foreign", fmt.Sprintf("Let the controller adopt it with its IP: `%sannotate serviceimport %s %s=true`. If it "+
				"is not used, delete it: `%[1]sdelete serviceimport %[2]s`.", of, from.Name, export.AnnotationAdopt),
				"The controller does not manage ServiceImport %s, so exports with this name are not imported.", name)
		}
		return
	}
	ready := meta.FindStatusCondition(from.Status.Conditions, string(v1beta1.ServiceImportConditionReady))
	if ready != nil && ready.Status != metav1.ConditionTrue {
		found.Fail("imports-ready", "Correct what the message names, or change or withdraw the exports of the service.",
			"Import %s is not ready: %s", name, ready.Message)
	}
	for _, kind := range placement.Kinds {
		told := meta.FindStatusCondition(from.Status.Conditions, kind)
		if told != nil && told.Reason == placement.ReasonInvalidAnnotation {
			found.Warn("preferences", "Correct spec.exportedAnnotations on the ServiceExports of all clusters.", "%s: %s", name, told.Message)
		}
	}
}
