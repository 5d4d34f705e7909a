// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/test/bench/servers"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
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
	if err := b.buildServer(ctx); err != nil {
		return j, err
	}
	program, err := servers.Build(ctx, "test/bench/controller")
	if err != nil {
		return j, err
	}
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
	own, member := map[*plane]string{}, map[*plane]string{}
	for _, p := range []*plane{j.east, j.west} {
		// Pods take no part.
		if err := errors.Join(p.Scheduler().Stop(ctx), p.Kwok().Stop(ctx), p.grantRights(ctx)); err != nil {
			return j, err
		}
		if own[p], err = p.credential(ctx, "clusterset-controller"); err != nil {
			return j, err
		}
		if member[p], err = p.credential(ctx, "clusterset-member"); err != nil {
			return j, err
		}
	}
	start := func(p, other *plane) (*servers.Process, error) {
		return servers.StartController(ctx, servers.ControllerSpec{
			Program: program, Cluster: p.Name(), Kubeconfig: own[p], Dir: b.dir,
			Members: map[string]string{other.Name(): member[other]},
		})
	}
	if j.eastController, err = start(j.east, j.west); err != nil {
		return j, err
	}
	if j.westController, err = start(j.west, j.east); err != nil {
		return j, err
	}
	j.dns, err = servers.Start(servers.Spec{
		Kind: servers.Ours, Program: b.program, Kubeconfig: j.west.kubeconfig, Dir: b.dir, Core: servers.AnyCore,
	})
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

// credential writes a kubeconfig of a service account of the project and returns its path.
func (p *plane) credential(ctx context.Context, account string) (string, error) {
	credential, err := clusterset.WriteCredential(ctx, p.Cluster, clusterset.Namespace, account)
	return string(credential), err
}

// grantRights applies the project's rights to a cluster.
func (p *plane) grantRights(ctx context.Context) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("find the checkout: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "deploy", "rbac.yaml"))
	if err != nil {
		return fmt.Errorf("read the rights: %w", err)
	}
	return clusterset.Apply(ctx, p.Cluster, text)
}
