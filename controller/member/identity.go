// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"fmt"
)

// An identity compares the id of a member's credential with the ids in its heartbeat.
type identity struct {
	cluster string // of the credential
	holder  string // of the heartbeat, empty if missing
	uid     string // of the heartbeat, empty if missing
	source  string // of the credential: "the Secret" or "the flag --member"
}

// wrong reports whether the heartbeat has another cluster id.
func (i identity) wrong() bool { return i.holder != "" && i.holder != i.cluster }

// misidentified returns why a member is not the cluster that its credential names, nil if it may be. If two members are
// the same cluster, a member with the right id is not blamed for the other.
func misidentified(is identity, own, ownUID string, others []identity) error {
	var problems []error
	if is.wrong() {
		problems = append(problems, fmt.Errorf(
			"this cluster calls itself %s, %s says %s: correct the id there, or --cluster-id of that cluster's controller", is.holder, is.source, is.cluster))
	}
	if is.uid != "" && is.uid == ownUID {
		problems = append(problems, fmt.Errorf(
			"this is the same cluster as %s, which this controller runs in: correct its kubeconfig", own))
	}
	for _, other := range others {
		if is.uid != "" && other.cluster != is.cluster && other.uid == is.uid && (is.wrong() || !other.wrong()) {
			problems = append(problems, fmt.Errorf(
				"this is the same cluster as member %s, by the UID of namespace kube-system: remove one of the two",
				other.cluster))
		}
	}
	return errors.Join(problems...)
}

// identify compares the ids in heartbeats with those of the credentials and reports differences, once and when they are
// resolved. It removes nothing.
func (s *Members) identify() {
	s.identifying.Lock()
	defer s.identifying.Unlock()
	members := s.List()
	identities := make([]identity, len(members))
	for i, m := range members {
		heard := m.Heartbeat()
		identities[i] = identity{
			cluster: m.cluster, holder: heard.Cluster, uid: heard.KubeSystemUID,
			source: "the flag --member",
		}
		if m.Secret() != nil {
			identities[i].source = "the Secret"
		}
	}
	reported := map[string]string{}
	for i, m := range members {
		secret := m.Secret()
		problem := Problem{Cluster: m.cluster, Secret: secret, Misidentified: true}
		key := problem.key()
		if m.Heartbeat().Heard.IsZero() {
			// No heartbeat was read with this credential yet: the last report stands.
			if before := s.misidentified[key]; before != "" {
				reported[key] = before
			}
			continue
		}
		if problem.Err = misidentified(identities[i], s.config.Cluster, s.config.Local.KubeSystemUID(),
			identities); problem.Err != nil {
			reported[key] = problem.Err.Error()
		}
		m.misidentified.Store(problem.Err != nil)
		if reported[key] != s.misidentified[key] {
			s.config.Reporter.Report(problem)
		}
	}
	s.misidentified = reported
}
