// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// surroundings are all that Members call. A nil function does nothing.
type surroundings struct {
	secrets        func() []*corev1.Secret
	tracked        func(*Member)
	serviceChanged func(types.NamespacedName)
	memberChanged  func(cluster string)
	reported       func(Problem)
	imported       map[types.NamespacedName]limits.Weight
	heard          func(is Heartbeat, renewed bool)
	listed         func(uid string, services []types.NamespacedName)
	ignores        bool // lists
}

func call[T any](function func(T), argument T) {
	if function != nil {
		function(argument)
	}
}

func (s *surroundings) Credentials() []*corev1.Secret               { return s.secrets() }
func (s *surroundings) Track(m *Member)                             { call(s.tracked, m) }
func (s *surroundings) Untrack(string)                              {}
func (s *surroundings) ServiceChanged(service types.NamespacedName) { call(s.serviceChanged, service) }

func (s *surroundings) Imported(string) map[types.NamespacedName]limits.Weight {
	return maps.Clone(s.imported)
}

func (s *surroundings) LeaseRead(_ *Member, is Heartbeat, renewed bool) {
	if s.heard != nil {
		s.heard(is, renewed)
	}
}

func (s *surroundings) Listed(_ *Member, uid string, services []types.NamespacedName, show func()) {
	if !s.ignores {
		show()
	}
	if s.listed != nil {
		s.listed(uid, services)
	}
}

func (s *surroundings) MemberChanged(cluster string) { call(s.memberChanged, cluster) }

func (s *surroundings) Report(problem Problem) { call(s.reported, problem) }

// of returns a configuration with these surroundings.
func (s *surroundings) of(config Config) Config {
	config.Local, config.Tracker, config.Report, config.Limits, config.Memory = s, s, s.Report, limits.Default, 1<<30
	return config
}

// members returns Members with these surroundings.
func (s *surroundings) members(config Config) *Members {
	members := New(s.of(config))
	members.Handle(s)
	return members
}

// member is the member of a candidate, which is not read.
func (s *surroundings) member(config Config, by *Candidate) *Member {
	return s.members(config).join(context.Background(), &registration{candidate: by, credential: Credential{Namespace: "clusterset-dns"}})
}

// west is the member west, whose candidate has no object.
func (s *surroundings) west() *Member {
	return s.member(Config{Clock: clock.RealClock{}}, &Candidate{Cluster: "west"})
}

// having are surroundings with some Secrets.
func having(secrets ...*corev1.Secret) *surroundings {
	return &surroundings{secrets: func() []*corev1.Secret { return secrets }}
}
