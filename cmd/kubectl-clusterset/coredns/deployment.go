// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// Container is that of CoreDNS, nil if the Deployment has none.
func Container(deployment *appsv1.Deployment) *corev1.Container {
	containers := deployment.Spec.Template.Spec.Containers
	at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == Name })
	switch {
	case at >= 0:
		return &containers[at]
	case len(containers) == 1:
		return &containers[0]
	}
	return nil
}

// setImage sets the image of the Deployment, and records the previous one.
func (c *change) setImage(ctx context.Context, image string) error {
	now := Container(c.deployment).Image
	if now == image {
		return nil
	}
	annotations := map[string]any{AnnotationImage: image}
	before, noted := c.deployment.Annotations[AnnotationBefore]
	if !noted || c.deployment.Annotations[AnnotationImage] != now {
		before, noted = now, false
		annotations[AnnotationBefore] = before
	}
	old := map[string]any{AnnotationImage: nil, AnnotationBefore: nil}
	if noted {
		old = map[string]any{AnnotationImage: now, AnnotationBefore: before}
	}
	c.undo = append(c.undo, func(ctx context.Context) error { return c.patch(ctx, old, now, nil) })
	if err := c.patch(ctx, annotations, image, nil); err != nil {
		return err
	}
	if err := c.awaitRollout(ctx); err != nil {
		return err
	}
	c.Teller.Wrote(c.DryRun, "Deployment %s/%s runs %s", Namespace, Name, image)
	return nil
}

// restoreImage restores the previous image, unless the image was changed since.
func (c *change) restoreImage(ctx context.Context) error {
	now, before := Container(c.deployment).Image, c.deployment.Annotations[AnnotationBefore]
	switch {
	case before == "" || c.deployment.Annotations[AnnotationImage] == "":
		return nil
	case c.deployment.Annotations[AnnotationImage] != now:
		c.Teller.Say("The image of Deployment %s/%s was changed after `coredns enable` and stays %s", Namespace, Name,
			now)
		before = now
	}
	ours := map[string]any{
		AnnotationImage:  c.deployment.Annotations[AnnotationImage],
		AnnotationBefore: c.deployment.Annotations[AnnotationBefore],
	}
	c.undo = append(c.undo, func(ctx context.Context) error { return c.patch(ctx, ours, now, nil) })
	if err := c.patch(ctx, map[string]any{AnnotationImage: nil, AnnotationBefore: nil}, before, nil); err != nil {
		return err
	}
	if err := c.awaitRollout(ctx); err != nil {
		return err
	}
	c.Teller.Wrote(c.DryRun, "Deployment %s/%s runs %s", Namespace, Name, before)
	return nil
}

// patch changes annotations of the Deployment and of its pods, and the image
// unless it is empty.
func (c *change) patch(ctx context.Context, annotations map[string]any, image string, ofPods map[string]any) error {
	template := map[string]any{}
	if ofPods != nil {
		template["metadata"] = map[string]any{"annotations": ofPods}
	}
	if image != "" {
		template["spec"] = map[string]any{"containers": []any{map[string]any{"name": c.container, "image": image}}}
	}
	change := map[string]any{"spec": map[string]any{"template": template}}
	if annotations != nil { // null would remove all that there are
		change["metadata"] = map[string]any{"annotations": annotations}
	}
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = c.Cluster.Kube.AppsV1().Deployments(Namespace).Patch(ctx, Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{FieldManager: cluster.FieldManager, DryRun: cluster.DryRun(c.DryRun)})
	if err != nil {
		return fmt.Errorf("deployment %s/%s: %w", Namespace, Name, err)
	}
	return nil
}

// awaitRollout waits until all pods are new and available.
func (c *change) awaitRollout(ctx context.Context) error {
	if c.DryRun {
		return nil
	}
	return c.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		deployment, err := c.Cluster.Kube.AppsV1().Deployments(Namespace).Get(ctx, Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return Pending(deployment), nil
	})
}

// Pending returns what a rollout is waiting for, or an empty text.
func Pending(deployment *appsv1.Deployment) string {
	want := int32(1)
	if deployment.Spec.Replicas != nil {
		want = *deployment.Spec.Replicas
	}
	status := deployment.Status
	switch {
	case status.ObservedGeneration < deployment.Generation:
		return "Deployment " + Name + " has not been observed yet"
	case status.UpdatedReplicas < want:
		return fmt.Sprintf("%d of %d new pods of Deployment %s are not created yet", want-status.UpdatedReplicas, want,
			Name)
	case status.AvailableReplicas < want:
		return fmt.Sprintf("%d of %d pods of Deployment %s are not available yet", want-status.AvailableReplicas,
			want, Name)
	case status.Replicas > status.UpdatedReplicas:
		return fmt.Sprintf("%d old pods of Deployment %s still exist", status.Replicas-status.UpdatedReplicas, Name)
	}
	return ""
}
