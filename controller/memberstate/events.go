// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"errors"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	documents "github.com/clusterset-dns/clusterset-dns/controller/state"
)

// Reasons of Events on the objects that make clusters members.
const (
	// EventMemberCredentialInvalid on the Secret of a member: the kubeconfig, the id or an annotation is invalid.
	EventMemberCredentialInvalid = "MemberCredentialInvalid"
	// EventMemberUnreachable on the Secret of a member: reading the member fails.
	EventMemberUnreachable = "MemberUnreachable"
	// EventMemberStale on the Secret of a member: its endpoints are demoted.
	EventMemberStale = "MemberStale"
	// EventMemberGone on the Secret of a member: its endpoints are removed, after --gone-after.
	EventMemberGone = "MemberGone"
	// EventMemberQuarantined on the Secret of a member: its new data is not accepted.
	EventMemberQuarantined = "MemberQuarantined"
	// EventMemberRecovered on the Secret of a member: its endpoints are used again.
	EventMemberRecovered = "MemberRecovered"
)

// A Reporter logs problems of members and records them as Events on their Secrets.
type Reporter struct {
	Logger   logr.Logger
	Recorder record.EventRecorder
}

// Report reports a problem of a member.
func (r *Reporter) Report(problem member.Problem) {
	message := documents.Safe(problem.Err.Error())
	reason, log := EventMemberUnreachable, "Cannot read a member; its imported endpoints stay"
	if problem.Refused {
		reason, log = EventMemberCredentialInvalid, "Refused the credential of a member"
	}
	r.Logger.Error(errors.New(message), log, "member", problem.Candidate.Cluster, "credential", problem.Candidate.String())
	if problem.Candidate.Object != nil {
		r.Recorder.Event(problem.Candidate.Object, corev1.EventTypeWarning, reason, message)
	}
}

// judged reports a change of the state of a member, or of its reason.
func (r *Reporter) judged(m *member.Member, was, is liveness.Verdict) {
	reason, message := Describe(is)
	kind := corev1.EventTypeWarning
	if reason == "" && was.State != liveness.Fresh {
		reason, message, kind = EventMemberRecovered, "Cluster "+is.Cluster+" is fresh again", corev1.EventTypeNormal
	}
	if reason == "" {
		return
	}
	r.Logger.Info(message, "member", is.Cluster, "state", is.State.String(), "reason", is.Reason)
	if object := m.Candidate().Object; object != nil {
		r.Recorder.Event(object, kind, reason, message)
	}
}

// Describe returns the reason of the Event for a verdict and its message, empty for a member that is fresh.
func Describe(is liveness.Verdict) (reason, message string) {
	cluster := "cluster " + is.Cluster
	const demoted = "its endpoints are used only if no other cluster has a ready one"
	confirm := "its previous exports stay until its heartbeats have arrived for a while, or until the annotation " + AnnotationConfirm +
		" of this Secret is " + is.Token
	switch {
	case is.State == liveness.Gone:
		return EventMemberGone, "No heartbeat from " + cluster + " for --gone-after: its endpoints are removed"
	case is.Reason == liveness.AnotherCluster:
		return EventMemberQuarantined, "Cluster " + is.Cluster + " has another UID than before: " + confirm
	case is.Reason == liveness.ExportsLost:
		return EventMemberQuarantined, "Cluster " + is.Cluster + " lost most or all of its exports at once: " + confirm
	case is.Reason == liveness.ClusterIDMismatch:
		return EventMemberQuarantined, "The credential of " + cluster + " connects to a cluster with another id in its heartbeat: " +
			"the previous exports stay. Correct the kubeconfig or the label of this Secret, or delete the Secret if the cluster left the set"
	case is.Reason == liveness.OtherClusterSet:
		return EventMemberQuarantined, "Cluster " + is.Cluster + " is of another cluster set: its ClusterProperty " +
			scope.ClusterSetProperty + " differs from that of this cluster. " +
			"Its previous exports stay, and no others are imported. Correct the property in one of the two, or delete the Secret"
	case is.Reason == liveness.Flapping:
		return EventMemberStale, "Contact with " + cluster + " was lost repeatedly: " +
			"its endpoints stay demoted until its heartbeats have arrived for a while"
	case is.Reason == liveness.PodsUnreachable:
		return EventMemberStale, "The pods of " + cluster + " are unreachable: " + demoted +
			". Check the pod network between the clusters"
	case is.State == liveness.Stale:
		return EventMemberStale, "No heartbeat from " + cluster + ": " + demoted
	}
	return "", ""
}
