// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
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
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// component is who writes Events.
const component = "clusterset-controller"

// Reasons of Events on the Secrets of members.
const (
	EventMemberRefused     = "MemberRefused"
	EventMemberUnreachable = "MemberUnreachable"
	EventMemberReachable   = "MemberReachable"
)

// newRecorder returns a writer of Events and how to end it.
func newRecorder(ctx context.Context, client kubernetes.Interface) (record.EventRecorder, func()) {
	scheme := runtime.NewScheme()
	utilruntime.Must(kubernetesscheme.AddToScheme(scheme))
	utilruntime.Must(v1beta1.Install(scheme))
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme, corev1.EventSource{Component: component}), broadcaster.Shutdown
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
	case problem.Err == nil:
		logger.Info("Reading the member")
		reason, kind = EventMemberReachable, corev1.EventTypeNormal
	case problem.Refused:
		logger.Error(problem.Err, "Refused the credential of a member")
		reason = EventMemberRefused
	default:
		logger.Error(problem.Err, "Cannot read a member; what was seen of it stays")
	}
	if problem.Secret == nil {
		return
	}
	message := "Reading cluster " + problem.Cluster
	if problem.Err != nil {
		message = problem.Err.Error()
	}
	r.recorder.Event(problem.Secret, kind, reason, message)
}

// newApplier returns the writer, which times how long changes took to arrive.
func newApplier(client kubernetes.Interface, recorder record.EventRecorder, now clock.PassiveClock, metrics *metrics, cluster string) *apply.Applier {
	return &apply.Applier{
		Core:     client,
		Recorder: recorder,
		Clock:    now,
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
