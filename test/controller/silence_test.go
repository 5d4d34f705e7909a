// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// TestSilenceOfARealServer: a member falls silent because its processes are stopped or killed. TestSilence of test/sim has
// what else makes it silent.
func TestSilenceOfARealServer(t *testing.T) {
	silent(t, "its etcd is frozen",
		func(b *realBed, s *scenario.Set) { must(s.T, b.planes["west"].Etcd().Freeze()) },
		func(b *realBed, s *scenario.Set) { must(s.T, b.planes["west"].Etcd().Thaw()) })
	silent(t, "its API server is frozen",
		func(b *realBed, s *scenario.Set) { must(s.T, b.planes["west"].APIServer().Freeze()) },
		func(b *realBed, s *scenario.Set) { must(s.T, b.planes["west"].APIServer().Thaw()) })
	silent(t, "its API server is killed and restarted",
		func(b *realBed, s *scenario.Set) { must(s.T, b.planes["west"].APIServer().Kill()) },
		func(b *realBed, s *scenario.Set) { must(s.T, b.planes["west"].APIServer().Start(s.Context())) })
}

// silent runs the scenario of a fault that makes west silent.
func silent(t *testing.T, name string, begin, heal func(*realBed, *scenario.Set)) {
	t.Run(name, func(t *testing.T) {
		b := &realBed{}
		scenario.Silence(func(s *scenario.Set) { begin(b, s) }, func(s *scenario.Set) { heal(b, s) }).On(t, b)
	})
}
