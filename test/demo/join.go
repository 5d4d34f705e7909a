// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

// join installs the two programs in each cluster and gives each the credential of the other.
func (s *story) join(ctx context.Context, bin string) error {
	s.chapter("install: rights, one CoreDNS and one controller in each cluster")
	for _, c := range s.clusters() {
		if err := s.kubectl.run(ctx, c, "apply", "-f", "deploy/rbac.yaml", "-f",
			"deploy/coredns-rbac.yaml"); err != nil {
			return err
		}
	}
	for _, c := range s.clusters() {
		if err := c.startDNS(ctx, filepath.Join(bin, "coredns")); err != nil {
			return err
		}
		if err := c.startController(ctx, filepath.Join(bin, "clusterset-controller")); err != nil {
			return err
		}
		s.say("%s: CoreDNS at %s, controller ready", c.name, c.dns)
	}
	s.chapter(
		"join: each cluster gets the other's credential, which reads EndpointSlices and a heartbeat and nothing else")
	for _, c := range s.clusters() {
		other := s.east
		if c == s.east {
			other = s.west
		}
		credential, err := clusterset.WriteCredential(ctx, other.plane, clusterset.Namespace, "clusterset-member")
		if err != nil {
			return err
		}
		if err := s.kubectl.run(ctx, c, "-n", "clusterset-dns", "create", "secret", "generic", other.name,
			"--from-file=kubeconfig="+string(credential)); err != nil {
			return err
		}
		if err := s.kubectl.run(ctx, c, "-n", "clusterset-dns", "label", "secret", other.name,
			"clusterset-dns.github.io/cluster="+other.name); err != nil {
			return err
		}
	}
	return nil
}
