// SPDX-License-Identifier: Apache-2.0

// Command real is the demo on real control planes: etcd, kube-apiserver, Kubernetes' controllers and kube-scheduler.
package main

import (
	"context"
	"os"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/demo/story"
)

func main() {
	story.Main(story.Bed{
		Real:  "clusterset-controller, CoreDNS, kubectl-clusterset; etcd, kube-apiserver, Kubernetes' controllers",
		Model: "nodes and pods, which kwok plays; pods run nothing",
		Start: start,
	})
}

func start(ctx context.Context, names ...string) ([]story.Plane, func() error, error) {
	// What is built is built before the clusters start.
	if _, err := assets.Ensure(ctx, os.Stderr, assets.Cluster()...); err != nil {
		return nil, nil, err
	}
	var options []controlplane.Options
	for _, name := range names {
		options = append(options, controlplane.Options{Name: name})
	}
	started, err := controlplane.StartAll(ctx, options...)
	if err != nil {
		return nil, nil, err
	}
	planes := make([]story.Plane, len(started))
	for i, each := range started {
		planes[i] = each
	}
	return planes, func() error { return controlplane.StopAll(started...) }, nil
}
