// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// forget removes the revisions of the Deployment that Enable and Disable made.
// Otherwise `kubectl rollout undo` would bring back an image, and annotations,
// that are gone. Revisions from before Enable stay, and so does whatever runs.
func (c *change) forget(ctx context.Context) error {
	selector, err := metav1.LabelSelectorAsSelector(c.deployment.Spec.Selector)
	if err != nil {
		return fmt.Errorf("deployment %s/%s: %w", Namespace, Name, err)
	}
	// Kubernetes may write the status of a revision meanwhile, such as when its last pod is gone: then all are read
	// again.
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return c.forgetOnce(ctx, selector.String()) })
}

func (c *change) forgetOnce(ctx context.Context, selector string) error {
	client := c.Cluster.Kube.AppsV1().ReplicaSets(Namespace)
	revisions, err := client.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return fmt.Errorf("revisions of Deployment %s/%s: %w", Namespace, Name, err)
	}
	for i := range revisions.Items {
		revision := &revisions.Items[i]
		if !metav1.IsControlledBy(revision, c.deployment) || ptr.Deref(revision.Spec.Replicas, 1) > 0 ||
			!made(revision) {
			continue
		}
		options := metav1.DeleteOptions{DryRun: cluster.DryRun(c.DryRun), Preconditions: &metav1.Preconditions{
			UID:             &revision.UID,
			ResourceVersion: &revision.ResourceVersion,
		}}
		if err := ignoreNotFound(client.Delete(ctx, revision.Name, options)); err != nil {
			return fmt.Errorf("ReplicaSet %s/%s, an obsolete revision of Deployment %s: %w",
				Namespace, revision.Name, Name, err)
		}
	}
	return nil
}

// made reports whether a revision is from between Enable and Disable. The Deployment's annotations are copied to its
// revisions.
func made(revision *appsv1.ReplicaSet) bool {
	return revision.Annotations[AnnotationImage] != "" || revision.Spec.Template.Annotations[AnnotationCorefile] != ""
}
