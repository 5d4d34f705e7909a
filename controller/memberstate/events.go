// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// Reasons of Events on the Secrets of members.
const (
	EventMemberCredentialInvalid = "MemberCredentialInvalid"
	EventMemberUnreachable       = "MemberUnreachable"
	EventMemberReachable         = "MemberReachable"
	EventMemberIdentityMismatch  = "MemberIdentityMismatch"
	EventMemberIdentityRestored  = "MemberIdentityRestored"
	EventMemberOverLimit         = "MemberOverLimit"
	EventMemberWithinLimits      = "MemberWithinLimits"
	EventMemberStale             = "MemberStale"
	EventMemberGone              = "MemberGone"
	EventMemberQuarantined       = "MemberQuarantined"
	EventMemberRecovered         = "MemberRecovered"
	EventAllMembersSilent        = "AllMembersSilent"
)

// A Reporter logs problems of members and records them as Events on their Secrets.
type Reporter struct {
	Logger   logr.Logger
	Recorder record.EventRecorder
}

// Report implements member.Reporter.
func (r *Reporter) Report(problem member.Problem) {
	reason, log := EventMemberUnreachable, "Cannot read a member; what was seen of it stays"
	over, overLog, message := EventMemberReachable, "Reading the member", "Reading cluster "+problem.Cluster
	switch {
	case problem.Misidentified:
		reason, log = EventMemberIdentityMismatch,
			"A member is another cluster than its credential says; what was seen of it stays"
		over, overLog = EventMemberIdentityRestored, "The member is the cluster that its credential says"
		message = "This is cluster " + problem.Cluster
	case problem.Limited:
		reason, log = EventMemberOverLimit, "A member exceeds a limit; what is beyond it is left out"
		over, overLog = EventMemberWithinLimits, "The member is within its limits again"
		message = "Cluster " + problem.Cluster + " is within its limits"
	case problem.Refused:
		reason, log = EventMemberCredentialInvalid, "Refused the credential of a member"
	}
	logger, kind := r.Logger.WithValues("member", problem.Cluster), corev1.EventTypeWarning
	if problem.Secret != nil {
		logger = logger.WithValues("secret", problem.Secret.Namespace+"/"+problem.Secret.Name)
	}
	if problem.Err != nil {
		message = problem.Err.Error()
		logger.Error(problem.Err, log)
	} else {
		reason, kind = over, corev1.EventTypeNormal
		logger.Info(overLog)
	}
	if problem.Secret != nil {
		r.Recorder.Event(problem.Secret, kind, reason, message)
	}
}

// judged reports the changes between two judgements. source returns a member, or nil if it left.
func (r *Reporter) judged(before, after liveness.Judgement, source func(cluster string) *member.Member) {
	if before.Isolated != after.Isolated {
		if after.Isolated {
			r.Logger.Error(nil, "No member is heard: the fault is more likely here. Nothing new is demoted until one is heard")
		} else {
			r.Logger.Info("A member is heard again")
		}
	}
	for _, is := range after.Members {
		was := before.Of(is.Cluster)
		if is.State == was.State && is.Reason == was.Reason {
			continue
		}
		reason, kind, message := eventOf(was, is)
		if reason == "" {
			continue
		}
		r.Logger.Info(message, "member", is.Cluster, "state", is.State.String(), "reason", is.Reason)
		if m := source(is.Cluster); m != nil && m.Secret() != nil {
			r.Recorder.Event(m.Secret(), kind, reason, message)
		}
	}
}

// eventOf returns the Event for a new verdict; the reason is empty if there is none.
func eventOf(was, is liveness.Verdict) (reason, kind, message string) {
	cluster := "Cluster " + is.Cluster
	confirm := "or until the annotation " + AnnotationConfirm + " of this Secret is " + is.Token
	switch {
	case is.State == liveness.Gone:
		return EventMemberGone, corev1.EventTypeWarning,
			cluster + " was silent for too long: what it contributed is removed"
	case is.Reason == liveness.AnotherCluster:
		return EventMemberQuarantined, corev1.EventTypeWarning, cluster + " is another one than before: " +
			"what was known of it is kept until it stayed a while, " + confirm
	case is.Reason == liveness.ClusterIDMismatch:
		return EventMemberQuarantined, corev1.EventTypeWarning, cluster + " calls itself by another id: " +
			"its exports are kept as they were. Correct --cluster-id of its controller or the id of this Secret, " +
			"or delete the Secret if the cluster left the set"
	case is.Reason == liveness.ExportsLost:
		return EventMemberQuarantined, corev1.EventTypeWarning, cluster + " lost most or all of its exports at once: " +
			"what was known of it is kept until it stayed so for a while, " + confirm
	case is.Reason == liveness.Flapping:
		return EventMemberStale, corev1.EventTypeWarning, cluster + " failed over and over: " +
			"its endpoints stay demoted until it stayed a while"
	case is.State == liveness.Stale:
		return EventMemberStale, corev1.EventTypeWarning, cluster + " is silent: " +
			"its endpoints are used only where no other cluster has a ready one"
	case is.Reason == liveness.AllMembersSilent:
		return EventAllMembersSilent, corev1.EventTypeWarning, "No member is heard, " +
			"so that nothing is concluded of the silence of cluster " + is.Cluster
	case was.State != liveness.Fresh || was.Reason == liveness.AllMembersSilent:
		return EventMemberRecovered, corev1.EventTypeNormal, cluster + " is believed"
	}
	return "", "", ""
}
