// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// component is who writes Events.
const component = "clusterset-controller"

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
	// EventRankInvalid is one on the namespace of the controller.
	EventRankInvalid = "RankInvalid"
)

// eventful are the kinds that Events are about.
var eventful = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(kubernetesscheme.AddToScheme(scheme))
	utilruntime.Must(v1beta1.Install(scheme))
	return scheme
})

// newRecorder returns a writer of Events and how to end it.
func newRecorder(ctx context.Context, client kubernetes.Interface) (record.EventRecorder, func()) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return broadcaster.NewRecorder(eventful(), corev1.EventSource{Component: component}), broadcaster.Shutdown
}

// A reporter tells what is wrong with members: in the log, and on the Secret
// where a person would look.
type reporter struct {
	logger   logr.Logger
	recorder record.EventRecorder
}

func (r *reporter) report(problem member.Problem) {
	logger := r.logger.WithValues("member", problem.Cluster)
	if problem.Secret != nil {
		logger = logger.WithValues("secret", problem.Secret.Namespace+"/"+problem.Secret.Name)
	}
	reason, kind := EventMemberUnreachable, corev1.EventTypeWarning
	switch {
	case problem.Err == nil && problem.Misidentified:
		logger.Info("The member is the cluster that its credential says")
		reason, kind = EventMemberIdentityRestored, corev1.EventTypeNormal
	case problem.Err == nil && problem.Limited:
		logger.Info("The member is within its limits again")
		reason, kind = EventMemberWithinLimits, corev1.EventTypeNormal
	case problem.Limited:
		logger.Error(problem.Err, "A member exceeds a limit; what is beyond it is left out")
		reason = EventMemberOverLimit
	case problem.Misidentified:
		logger.Error(problem.Err, "A member is another cluster than its credential says; what was seen of it stays")
		reason = EventMemberIdentityMismatch
	case problem.Err == nil:
		logger.Info("Reading the member")
		reason, kind = EventMemberReachable, corev1.EventTypeNormal
	case problem.Refused:
		logger.Error(problem.Err, "Refused the credential of a member")
		reason = EventMemberCredentialInvalid
	default:
		logger.Error(problem.Err, "Cannot read a member; what was seen of it stays")
	}
	if problem.Secret == nil {
		return
	}
	message := "Reading cluster " + problem.Cluster
	switch {
	case problem.Err != nil:
		message = problem.Err.Error()
	case problem.Limited:
		message = "Cluster " + problem.Cluster + " is within its limits"
	case problem.Misidentified:
		message = "This is cluster " + problem.Cluster
	}
	r.recorder.Event(problem.Secret, kind, reason, message)
}

// judged tells what changed in what is believed of the members.
func (r *reporter) judged(members *member.Set, before, after liveness.Judgement) {
	if before.Deaf != after.Deaf {
		if after.Deaf {
			r.logger.Error(nil, "No member is heard: the fault is more likely here. Nothing new is demoted until one is heard")
		} else {
			r.logger.Info("A member is heard again")
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
		r.logger.Info(message, "member", is.Cluster, "state", is.State.String(), "reason", is.Reason)
		if m := members.Get(is.Cluster); m != nil && m.Secret() != nil {
			r.recorder.Event(m.Secret(), kind, reason, message)
		}
	}
}

// eventOf is what to tell of a verdict, nothing where it is not worth it.
func eventOf(was, is liveness.Verdict) (reason, kind, message string) {
	switch {
	case is.State == liveness.Gone:
		return EventMemberGone, corev1.EventTypeWarning, "Cluster " + is.Cluster + " was silent for too long: what it contributed is removed"
	case is.Reason == liveness.AnotherCluster:
		return EventMemberQuarantined, corev1.EventTypeWarning, "Cluster " + is.Cluster + " is another one than before: what was known of it is kept until it stayed a while, or until the annotation " +
			AnnotationConfirm + " of this Secret is " + is.Token
	case is.Reason == liveness.ClusterIDMismatch:
		return EventMemberQuarantined, corev1.EventTypeWarning, "Cluster " + is.Cluster + " calls itself by another id: its exports are kept as they were. " +
			"Correct --cluster-id of its controller or the id of this Secret, or delete the Secret if the cluster left the set"
	case is.Reason == liveness.ExportsLost:
		return EventMemberQuarantined, corev1.EventTypeWarning, "Cluster " + is.Cluster + " lost most or all of its exports at once: what was known of it is kept until it stayed so for a while, or until the annotation " +
			AnnotationConfirm + " of this Secret is " + is.Token
	case is.Reason == liveness.Flapping:
		return EventMemberStale, corev1.EventTypeWarning, "Cluster " + is.Cluster + " failed over and over: its endpoints stay demoted until it stayed a while"
	case is.State == liveness.Stale:
		return EventMemberStale, corev1.EventTypeWarning, "Cluster " + is.Cluster + " is silent: its endpoints are used only where no other cluster has a ready one"
	case is.Reason == liveness.AllMembersSilent:
		return EventAllMembersSilent, corev1.EventTypeWarning, "No member is heard, so that nothing is concluded of the silence of cluster " + is.Cluster
	case was.State != liveness.Fresh || was.Reason == liveness.AllMembersSilent:
		return EventMemberRecovered, corev1.EventTypeNormal, "Cluster " + is.Cluster + " is believed"
	}
	return "", "", ""
}

// newApplier returns the writer, which times how long changes took to arrive.
func newApplier(client kubernetes.Interface, recorder record.EventRecorder, now clock.PassiveClock, metrics *metrics, cluster string) *apply.Applier {
	return &apply.Applier{
		Core:     client,
		Recorder: recorder,
		Clock:    now,
		Repeated: metrics.repeatedWrite,
		Written: func(before, after *discoveryv1.EndpointSlice) {
			trigger := after.Annotations[export.AnnotationTriggerTime]
			if trigger == "" || before != nil && before.Annotations[export.AnnotationTriggerTime] == trigger {
				return
			}
			origin := originRemote
			if after.Labels[export.LabelSourceCluster] == cluster {
				origin = originLocal
			}
			if at, err := time.Parse(time.RFC3339Nano, trigger); err == nil {
				metrics.propagated(origin, now.Since(at))
			}
		},
	}
}
