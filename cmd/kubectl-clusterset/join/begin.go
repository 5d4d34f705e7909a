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

// awaitControllers waits for those controllers that are installed and have not
// said yet who they are, since joining is what comes right after installing.
// Whatever else is wrong is left to identify.
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

// beginning says that a controller is installed and has never run, nothing
// otherwise.
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
	return fmt.Sprintf("%s of context %s has to begin, %d of %d pods are available", ControllerName, c.Context,
		deployment.Status.AvailableReplicas, deployment.Status.Replicas), nil
}
