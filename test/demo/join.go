// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
)

// join installs the two programs in each cluster and gives each a credential of each other.
func (s *story) join(ctx context.Context) error {
	s.chapter("install: rights, one CoreDNS and one controller in each cluster")
	for _, c := range s.all() {
		if err := s.kubectl.apply(ctx, c, "deploy/rbac.yaml", "deploy/coredns-rbac.yaml"); err != nil {
			return err
		}
	}
	var starting sync.WaitGroup
	failed := make([]error, len(s.all()))
	for i, c := range s.all() {
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
	for _, c := range s.all() {
		s.say("%s: CoreDNS at %s, controller ready", c.name, c.dns)
	}
	s.chapter(
		"join: each cluster gets a credential of each other, which reads EndpointSlices and a heartbeat and nothing else")
	args := []string{"join", "east", "west", "north"}
	for _, c := range s.all() {
		args = append(args, "--server", c.name+"="+c.plane.Config().Host)
	}
	if _, err := s.kubectl.plugin(ctx, args...); err != nil {
		return err
	}
	// The canaries of the demo are at an address of this machine.
	if err := s.kubectl.confine(ctx, s.east, "west", "0.0.0.0/0"); err != nil {
		return err
	}
	return s.kubectl.confine(ctx, s.west, "east", "0.0.0.0/0")
}
