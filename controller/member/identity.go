// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"fmt"
)

// An identity is who a member is said to be and who its heartbeat says it is.
type identity struct {
	cluster string // by its credential
	holder  string // by its own word, empty where it did not say
	uid     string // of its namespace kube-system, empty where it did not say
	source  string // what names it here: "the Secret" or "the flag --member"
}

// wrong tells whether the cluster calls itself by another id.
func (i identity) wrong() bool { return i.holder != "" && i.holder != i.cluster }

// misidentified returns what contradicts that a member is who its credential says, nil where nothing does. Of two
// members that are the same cluster, one that bears its true name is not blamed for the other.
func misidentified(is identity, own, ownUID string, others []identity) error {
	var problems []error
	if is.wrong() {
		problems = append(problems, fmt.Errorf(
			"this cluster calls itself %s, %s says %s: correct the id there, or --cluster-id of that cluster's controller", is.holder, is.source, is.cluster))
	}
	if is.uid != "" && is.uid == ownUID {
		problems = append(problems, fmt.Errorf(
			"this is the same cluster as %s, the one that this controller runs in: its kubeconfig leads back here",
			own))
	}
	for _, other := range others {
		if is.uid != "" && other.cluster != is.cluster && other.uid == is.uid && (is.wrong() || !other.wrong()) {
			problems = append(problems, fmt.Errorf(
				"this is the same cluster as member %s: the two have the same namespace kube-system", other.cluster))
		}
	}
	return errors.Join(problems...)
}

// identify compares what the members say of themselves with what the credentials say, and reports where they differ and
// where that is over. Nothing else follows from it: what was seen of a member stays.
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
	told := map[string]string{}
	for i, m := range members {
		secret := m.Secret()
		problem := Problem{Cluster: m.cluster, Secret: secret, Misidentified: true}
		key := problem.key()
		if m.Heartbeat().Heard.IsZero() {
			// Nothing was heard by this credential: what was told holds.
			if before := s.misidentified[key]; before != "" {
				told[key] = before
			}
			continue
		}
		if problem.Err = misidentified(identities[i], s.config.Cluster, s.config.Local.KubeSystemUID(),
			identities); problem.Err != nil {
			told[key] = problem.Err.Error()
		}
		m.misidentified.Store(problem.Err != nil)
		if told[key] != s.misidentified[key] {
			s.config.Reporter.Report(problem)
		}
	}
	s.misidentified = told
}
