// SPDX-License-Identifier: Apache-2.0

// Package probepod has pods that run the command probe of clusterset-controller,
// and the way to ask them.
package probepod

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/join"
)

// Lifetime ends pods that nobody deletes.
const Lifetime = 15 * time.Minute

// Template has what pods of a cluster need to run: that of the controller's
// Deployment, with another image if that is not empty.
func Template(ctx context.Context, c *cluster.Cluster, image string) (corev1.PodSpec, error) {
	container := corev1.Container{SecurityContext: &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}}
	spec := corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{
		RunAsNonRoot:   ptr.To(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}}
	deployment, err := c.Kube.AppsV1().Deployments(c.Namespace).Get(ctx, join.ControllerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && image != "":
	case err != nil:
		return spec, fmt.Errorf("context %s: the image of the controller: %w", c.Context, err)
	default:
		its := deployment.Spec.Template.Spec
		spec.NodeSelector, spec.Tolerations = its.NodeSelector, its.Tolerations
		spec.ImagePullSecrets, spec.SecurityContext = its.ImagePullSecrets, its.SecurityContext
		first := its.Containers[0]
		container.Image, container.ImagePullPolicy = first.Image, first.ImagePullPolicy
		container.Command, container.SecurityContext = first.Command, first.SecurityContext
	}
	if image != "" {
		container.Image = image
	}
	spec.Containers = []corev1.Container{container}
	return spec, nil
}

// New is a pod of a template, with a label for its purpose, that answers with an
// identity. It ends by itself.
func New(template corev1.PodSpec, labels map[string]string, identity string) *corev1.Pod {
	spec := *template.DeepCopy()
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.ActiveDeadlineSeconds = ptr.To(int64(Lifetime.Seconds()))
	spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	spec.AutomountServiceAccountToken, spec.EnableServiceLinks = ptr.To(false), ptr.To(false)
	container := &spec.Containers[0]
	container.Name = "probe"
	container.Args = []string{"probe", "--identity=" + identity}
	container.Ports = []corev1.ContainerPort{
		{Name: "tcp", Protocol: corev1.ProtocolTCP, ContainerPort: probe.Port},
		{Name: "udp", Protocol: corev1.ProtocolUDP, ContainerPort: probe.Port},
	}
	container.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
	}
	container.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(probe.Port)}},
		PeriodSeconds: 1,
	}
	container.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}
}

// Labels are those of pods with a purpose.
func Labels(component string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": "clusterset-dns", "app.kubernetes.io/component": component,
		"app.kubernetes.io/managed-by": cluster.FieldManager,
	}
}

// Pending says what a pod still waits for; empty means that it is ready. The error
// is that of a pod that has exited, and will not become ready.
func Pending(pod *corev1.Pod) (string, error) {
	switch {
	case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return "", fmt.Errorf("pod %s exited: %s", pod.Name, why(pod))
	case !isReady(pod) || len(pod.Status.PodIPs) == 0:
		return cmp.Or(why(pod), "its node has not reported it yet"), nil
	}
	return "", nil
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// why says what a pod that is not ready waits for, or why it ended.
func why(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil {
			return strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": ")
		}
		if ended := status.State.Terminated; ended != nil {
			return strings.TrimSpace(ended.Reason + " " + ended.Message)
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Status != corev1.ConditionTrue && condition.Message != "" {
			return condition.Message
		}
	}
	return strings.TrimSpace(string(pod.Status.Phase) + " " + pod.Status.Message)
}

// Exactly deletes no other object of the name.
func Exactly(object metav1.Object) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(object.GetUID())}}
}
