// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// etcd does something with the store of a cluster.
func (b *bed) etcd(c *cluster, do func(context.Context, *clientv3.Client) error) {
	b.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"unix://" + filepath.Join(c.Directory(), "etcd:0")},
		Logger:    zap.NewNop(),
	})
	b.must(err)
	defer func() { b.must(client.Close()) }()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	b.must(do(ctx, client))
}

// revision is that of the store: resource versions are such.
func (b *bed) revision(c *cluster) (revision int64) {
	b.Helper()
	b.etcd(c, func(ctx context.Context, client *clientv3.Client) error {
		response, err := client.Get(ctx, "/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err == nil {
			revision = response.Header.Revision
		}
		return err
	})
	return revision
}

// compact makes the store forget what was before now.
func (b *bed) compact(c *cluster) {
	b.Helper()
	revision := b.revision(c)
	b.etcd(c, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical())
		return err
	})
}

// isGone asserts that no watch can begin at a revision.
func (b *bed) isGone(c *cluster, revision int64) {
	b.Helper()
	b.eventually("410 Gone", func(ctx context.Context) error {
		watcher, err := c.DiscoveryV1().EndpointSlices("").Watch(ctx, metav1.ListOptions{ResourceVersion: strconv.FormatInt(revision, 10)})
		if err == nil {
			event := <-watcher.ResultChan()
			watcher.Stop()
			err = apierrors.FromObject(event.Object)
		}
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return fmt.Errorf("a watch from revision %d says: %w", revision, err)
		}
		return nil
	})
}
