// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

const (
	// readyTimeout limits each wait for a state. It is long, because several clusters may start on few cores.
	readyTimeout = 3 * time.Minute
	// requestTimeout limits each request of such a wait, so that a request to a hanging server is repeated.
	requestTimeout = 10 * time.Second
	pollInterval   = 100 * time.Millisecond
)

// poll calls check until it returns nil. It fails if a component ends or the time is up. The error has the purpose of
// the wait, the last error of check, and the ends of the components' logs.
func (c *Cluster) poll(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		last = check(ctx)
		return last == nil, c.Err()
	})
	switch {
	case err == nil:
		return nil
	case !wait.Interrupted(err):
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return fmt.Errorf("wait for %s: not within %s: %w%s", what, readyTimeout, last, c.Logs())
}

// waitReady waits until the API server is ready.
func (c *Cluster) waitReady(ctx context.Context) error {
	return c.poll(ctx, "the API server to be ready", func(ctx context.Context) error {
		return c.Client().Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// installCRDs creates the CRDs of the Multi-Cluster Services API, and waits until the API server serves them.
func (c *Cluster) installCRDs(ctx context.Context) error {
	if err := c.Apply(ctx, []byte(clusterset.CRDs)); err != nil {
		return err
	}
	for _, resource := range []string{"serviceexports", "serviceimports"} {
		if err := c.poll(ctx, "the API of "+resource, func(ctx context.Context) error {
			_, err := c.Dynamic().Resource(v1beta1.SchemeGroupVersion.WithResource(resource)).List(ctx, metav1.ListOptions{Limit: 1})
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// waitWorking waits until the controllers have created the service account of the namespace default.
func (c *Cluster) waitWorking(ctx context.Context) error {
	return c.poll(ctx, "the service account of namespace default", func(ctx context.Context) error {
		_, err := c.Client().CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}
