// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SetPodReady sets the condition Ready of a pod, as its kubelet would after a readiness probe. kwok makes each pod
// ready once, and leaves it alone after that.
func (c *Cluster) SetPodReady(ctx context.Context, namespace, name string, ready bool) error {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.PodCondition{
		{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(time.Now())},
		{Type: corev1.ContainersReady, Status: status, LastTransitionTime: metav1.NewTime(time.Now())},
	}}})
	if err != nil {
		return fmt.Errorf("encode the conditions of pod %s/%s: %w", namespace, name, err)
	}
	_, err = c.clientset.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("set ready=%t on pod %s/%s in cluster %s: %w", ready, namespace, name, c.options.Name, err)
	}
	return nil
}
