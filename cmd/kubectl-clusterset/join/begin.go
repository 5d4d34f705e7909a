// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// ControllerName is the name of the controller's Deployment.
const ControllerName = "clusterset-controller"

// awaitControllers waits for controllers that are installed but have not written a
// heartbeat yet, because join usually follows the installation. identify reports
// other errors.
func (o Options) awaitControllers(ctx context.Context) error {
	return o.Teller.Wait(ctx, func(ctx context.Context) (string, error) {
		var missing []string
		for _, c := range o.Clusters {
			why, err := beginning(ctx, c)
			if err != nil {
				return "", err
			}
			if why != "" {
				missing = append(missing, why)
			}
		}
		return strings.Join(missing, "; "), nil
	})
}

// beginning returns a text if a controller is installed and has never run.
func beginning(ctx context.Context, c *cluster.Cluster) (string, error) {
	if _, err := c.Identify(ctx); !errors.Is(err, cluster.ErrNeverRan) {
		return "", nil
	}
	deployment, err := c.Kube.AppsV1().Deployments(c.Namespace).Get(ctx, ControllerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("context %s: %w", c.Context, err)
	}
	return fmt.Sprintf("waiting for %s of context %s to start: %d of %d pods are available", ControllerName, c.Context,
		deployment.Status.AvailableReplicas, deployment.Status.Replicas), nil
}
