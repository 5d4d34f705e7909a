// SPDX-License-Identifier: Apache-2.0

package member

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// surroundings are all that Members call. A nil function does nothing.
type surroundings struct {
	secrets        func() []*corev1.Secret
	tracked        func(*Member)
	serviceChanged func(types.NamespacedName)
	memberChanged  func(cluster string)
	reported       func(Problem)
	read           func(from *Member) // a heartbeat or a list
	lacks          bool               // whether lists lack exports
}

func call[T any](function func(T), argument T) {
	if function != nil {
		function(argument)
	}
}

func (s *surroundings) Credentials() []*corev1.Secret                          { return s.secrets() }
func (s *surroundings) Imported(string) map[types.NamespacedName]limits.Weight { return nil }
func (s *surroundings) Track(m *Member)                                        { call(s.tracked, m) }
func (s *surroundings) Untrack(string)                                         {}
func (s *surroundings) LeaseRead(from *Member, _ Heartbeat, _ bool)            { call(s.read, from) }

func (s *surroundings) ServiceChanged(service types.NamespacedName) { call(s.serviceChanged, service) }

func (s *surroundings) Listed(from *Member, _ string, _ []types.NamespacedName, show func()) bool {
	show()
	call(s.read, from)
	return s.lacks
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

// having are surroundings with some Secrets.
func having(secrets ...*corev1.Secret) *surroundings {
	return &surroundings{secrets: func() []*corev1.Secret { return secrets }}
}
