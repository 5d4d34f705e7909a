// SPDX-License-Identifier: Apache-2.0

package connectivity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/join"
)

const (
	// lifetime ends pods that nobody deletes.
	lifetime = 15 * time.Minute
	// writeTimeout bounds a write after an interrupt.
	writeTimeout = 30 * time.Second
)

// podOf is a pod that tries the targets, and runs as the Deployment of the controller does.
func (s *site) podOf(ctx context.Context, targets []string) (*corev1.Pod, error) {
	deployment, err := s.Kube.AppsV1().Deployments(s.Namespace).Get(ctx, join.ControllerName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("context %s: the image of the controller: %w", s.Context, err)
	}
	spec := deployment.Spec.Template.Spec
	container := corev1.Container{
		Name: "probe", Args: append([]string{"probe", s.id}, targets...), Command: spec.Containers[0].Command,
		Image: spec.Containers[0].Image, ImagePullPolicy: spec.Containers[0].ImagePullPolicy,
		SecurityContext: spec.Containers[0].SecurityContext, Resources: spec.Containers[0].Resources,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: map[string]string{
			"app.kubernetes.io/name": "clusterset-dns", "app.kubernetes.io/component": "probe",
			"app.kubernetes.io/managed-by": cluster.FieldManager, "app.kubernetes.io/instance": s.name,
		}},
		Spec: corev1.PodSpec{
			Hostname: s.name, Subdomain: s.headless(),
			Containers: []corev1.Container{container}, RestartPolicy: corev1.RestartPolicyNever,
			ActiveDeadlineSeconds: ptr.To(int64(lifetime.Seconds())), TerminationGracePeriodSeconds: ptr.To[int64](1),
			AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
			NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations,
			ImagePullSecrets: spec.ImagePullSecrets, SecurityContext: spec.SecurityContext,
		},
	}, nil
}

// delete deletes the pod, and with it what it owns, even if ctx has ended.
func (s *site) delete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	err := s.Kube.CoreV1().Pods(s.Namespace).Delete(ctx, s.name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("context %s: a pod is not deleted: %w: kubectl --context %s -n %s delete pod %s", s.Context, err,
			s.Context, s.Namespace, s.name)
	}
	return nil
}

// read puts the newest results of the pod into its paths. pending says what a pod that does not run waits for.
func (s *site) read(ctx context.Context, paths []Path) (pending string, err error) {
	pods := s.Kube.CoreV1().Pods(s.Namespace)
	pod, err := pods.Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("context %s: %w", s.Context, err)
	}
	switch pod.Status.Phase {
	case corev1.PodRunning:
	case corev1.PodFailed, corev1.PodSucceeded:
		return "", fmt.Errorf("context %s: pod %s exited: %s: the controller must have the version of this command",
			s.Context, s.name, why(pod))
	default:
		return fmt.Sprintf("pod %s in %s does not run (%s)", s.name, s.Context, why(pod)), nil
	}
	log, err := pods.GetLogs(s.name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return fmt.Sprintf("the log of pod %s in %s cannot be read (%v)", s.name, s.Context, err), nil
	}
	for text := range bytes.Lines(log) {
		var line probe.Line
		if json.Unmarshal(text, &line) == nil && line.Index >= 0 && line.Index < len(paths) {
			paths[line.Index].Result = line.Result
		}
	}
	return "", nil
}

// why says what a pod waits for, or why it ended.
func why(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil {
			return waiting.Reason + ": " + waiting.Message
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
	return pod.Status.Message
}
