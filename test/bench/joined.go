// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/port"
)

// joinedClusters are two clusters that are members of each other, with a CoreDNS in west.
type joinedClusters struct {
	*bench
	east, west                     *plane
	eastController, westController *servers.Process
	dns                            *servers.Server
}

// join starts two clusters and makes them members of each other. Who calls it stops them, after an error too.
func (b *bench) join(ctx context.Context) (*joinedClusters, error) {
	j := &joinedClusters{bench: b}
	clusters, err := controlplane.StartAll(ctx, controlplane.Options{Name: "east"}, controlplane.Options{Name: "west"})
	if err != nil {
		return j, err
	}
	if j.east, err = newPlane(clusters[0]); err != nil {
		return j, errors.Join(err, controlplane.StopAll(clusters...))
	}
	if j.west, err = newPlane(clusters[1]); err != nil {
		return j, errors.Join(err, clusters[1].Stop())
	}
	for _, p := range []*plane{j.east, j.west} {
		// Pods take no part.
		if err := errors.Join(p.Scheduler().Stop(ctx), p.Kwok().Stop(ctx),
			clusterset.Install(ctx, p.Cluster)); err != nil {
			return j, err
		}
	}
	if err := errors.Join(j.east.read(ctx, j.west, "west"), j.west.read(ctx, j.east, "east")); err != nil {
		return j, err
	}
	if j.eastController, err = j.startController(ctx, j.east); err != nil {
		return j, err
	}
	if j.westController, err = j.startController(ctx, j.west); err != nil {
		return j, err
	}
	j.dns, err = b.startServer(ctx, servers.AnyCore, servers.Ours, j.west.kubeconfig)
	return j, err
}

// stop ends all.
func (j *joinedClusters) stop() error {
	errs := []error{j.eastController.End(), j.westController.End()}
	if j.dns != nil {
		errs = append(errs, j.dns.End())
	}
	for _, p := range []*plane{j.east, j.west} {
		if p != nil {
			errs = append(errs, p.Stop())
		}
	}
	return errors.Join(errs...)
}

// read makes a cluster a member, under these ids.
func (p *plane) read(ctx context.Context, member *plane, ids ...string) error {
	credential, err := member.ServiceAccountKubeconfig(ctx, clusterset.Namespace, "clusterset-member")
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := clusterset.Join(ctx, p.Cluster, id, credential); err != nil {
			return err
		}
	}
	return nil
}

// startController starts the controller of a cluster and returns when it is ready. Who calls it ends it.
func (b *bench) startController(ctx context.Context, p *plane) (*servers.Process, error) {
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	credential, err := clusterset.WriteCredential(ctx, p.Cluster, clusterset.Namespace, "clusterset-controller")
	if err != nil {
		return nil, err
	}
	debug, err := port.Free()
	if err != nil {
		return nil, err
	}
	started, err := clusterset.StartController(p.Cluster, filepath.Join(b.bin, "controller"), credential,
		"--debug-address", debug.String())
	if err != nil {
		return nil, err
	}
	if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, started.Ready); err != nil {
		return nil, errors.Join(err, started.Kill())
	}
	return &servers.Process{Process: started.Process, Debug: debug.String()}, nil
}
