// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"fmt"
)

// misidentified returns why a member that was heard is not the cluster that its credential names, nil if it may be. own and
// ownUID are of the local cluster. Two members that are the same cluster have its id, so that one of them is wrong.
func misidentified(m *Member, own, ownUID string) error {
	var problems []error
	is := m.Heartbeat()
	if is.Cluster != "" && is.Cluster != m.cluster {
		problems = append(problems, fmt.Errorf(
			"this cluster calls itself %s, the %s says %s: correct the id there, or --cluster-id of that cluster's controller",
			is.Cluster, m.Candidate().Kind, m.cluster))
	}
	if is.KubeSystemUID != "" && is.KubeSystemUID == ownUID {
		problems = append(problems, fmt.Errorf(
			"this is the same cluster as %s, which this controller runs in: correct its kubeconfig", own))
	}
	return errors.Join(problems...)
}

// identify compares the ids in the heartbeat of a member with that of its credential and reports a difference, once and
// when it is resolved. It removes nothing.
func (s *Members) identify(m *Member) {
	s.identifying.Lock()
	defer s.identifying.Unlock()
	before := m.Misidentified()
	problem := Problem{Cluster: m.cluster, Candidate: m.Candidate(), Misidentified: true}
	problem.Err = misidentified(m, s.config.Cluster, s.config.Local.KubeSystemUID())
	m.misidentified.Store(&problem.Err)
	if fmt.Sprint(before) != fmt.Sprint(problem.Err) {
		s.config.Reporter.Report(problem)
	}
}
