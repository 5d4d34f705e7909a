// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/test/audit"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// TestSilenceOfARealServer: a member becomes unreachable because its processes are stopped or killed, or because it
// refuses a credential. TestSilence of test/sim has the other causes.
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
	silent(t, "its credential loses its rights",
		func(b *realBed, s *scenario.Set) {
			setSubjects(s, "null")
			s.Eventually("refusal", func() error {
				allowed, err := audit.Allowed(s.Context(), b.planes["west"], audit.Account(system, memberName), "list discovery.k8s.io/endpointslices")
				if allowed {
					err = errors.New("it is allowed")
				}
				return err
			})
			b.Reset("east", "west") // an open watch survives the refusal
		},
		func(_ *realBed, s *scenario.Set) {
			setSubjects(s, `[{"kind":"ServiceAccount","name":"`+memberName+`","namespace":"`+system+`"}]`)
		})
}

// silent runs the scenario of a fault that makes west unreachable.
func silent(t *testing.T, name string, begin, heal func(*realBed, *scenario.Set)) {
	t.Run(name, func(t *testing.T) {
		b := &realBed{}
		b.run(t, scenario.Silence(func(s *scenario.Set) { begin(b, s) }, func(s *scenario.Set) { heal(b, s) }))
	})
}

// setSubjects binds a member's read rights to these subjects.
func setSubjects(s *scenario.Set, subjects string) {
	patch, rights := []byte(`{"subjects":`+subjects+`}`), s.Cluster("west").Kube.RbacV1()
	_, err := rights.ClusterRoleBindings().Patch(s.Context(), memberName, types.MergePatchType, patch,
		metav1.PatchOptions{})
	must(s.T, err)
	_, err = rights.RoleBindings(system).Patch(s.Context(), memberName, types.MergePatchType, patch,
		metav1.PatchOptions{})
	must(s.T, err)
}
