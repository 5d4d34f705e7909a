// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
)

// join installs the two programs in each cluster and gives each the credential of the other.
func (s *story) join(ctx context.Context) error {
	s.chapter("install: rights, one CoreDNS and one controller in each cluster")
	for _, c := range s.clusters() {
		if err := s.kubectl.apply(ctx, c, "deploy/rbac.yaml", "deploy/coredns-rbac.yaml"); err != nil {
			return err
		}
	}
	var starting sync.WaitGroup
	failed := make([]error, len(s.clusters()))
	for i, c := range s.clusters() {
		starting.Go(func() {
			if failed[i] = c.startDNS(ctx, filepath.Join(s.kubectl.bin, "coredns")); failed[i] == nil {
				failed[i] = c.startController(ctx, filepath.Join(s.kubectl.bin, "clusterset-controller"))
			}
		})
	}
	starting.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	for _, c := range s.clusters() {
		s.say("%s: CoreDNS at %s, controller ready", c.name, c.dns)
	}
	s.chapter(
		"join: each cluster gets the other's credential, which reads EndpointSlices and a heartbeat and nothing else")
	if err := s.kubectl.plugin(ctx, "join", "east", "west", "--server", "east="+s.east.plane.Config().Host,
		"--server", "west="+s.west.plane.Config().Host); err != nil {
		return err
	}
	// The canaries of the demo are at an address of this machine.
	if err := s.kubectl.confine(ctx, s.east, "west", "0.0.0.0/0"); err != nil {
		return err
	}
	return s.kubectl.confine(ctx, s.west, "east", "0.0.0.0/0")
}
