// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"fmt"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// An identity compares the id of a member's credential with the ids in its heartbeat.
type identity struct {
	cluster string // of the credential
	holder  string // of the heartbeat, empty if missing
	uid     string // of the heartbeat, empty if missing
	source  string // of the credential: "the Secret" or "the flag --member"
	pin     string // UIDAnnotation of the credential, empty if it has none
}

// UIDAnnotation on the Secret of a member is the UID of its namespace kube-system, as join read it there. If a hostile
// member claims the UID of another member, the annotation of the other member proves the owner.
const UIDAnnotation = export.Domain + "/uid"

// wrong reports whether the heartbeat has another cluster id.
func (i identity) wrong() bool { return i.holder != "" && i.holder != i.cluster }

// misidentified returns why a member is not the cluster that its credential names, nil if it may be. If two members are
// the same cluster, a member with the right id is not blamed for the other.
func misidentified(is identity, own, ownUID string, others []identity) error {
	var problems []error
	if is.wrong() {
		problems = append(problems, fmt.Errorf(
			"this cluster calls itself %s, %s says %s: correct the id there, or --cluster-id of that cluster's controller",
			is.holder, is.source, is.cluster))
	}
	if is.uid != "" && is.uid == ownUID {
		problems = append(problems, fmt.Errorf(
			"this is the same cluster as %s, which this controller runs in: correct its kubeconfig", own))
	}
	if is.pin != "" && is.uid != "" && is.uid != is.pin {
		problems = append(problems, fmt.Errorf("the UID of its namespace kube-system is %s, and was %s when it joined: if it is a new "+
			"cluster, run `kubectl clusterset join` again", is.uid, is.pin))
	}
	for _, other := range others {
		if is.pin == is.uid && other.pin != other.uid {
			continue
		}
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
	members, uid := s.List(), s.config.Local.KubeSystemUID()
	byUID := map[string][]identity{}
	for _, m := range members {
		if is := identityOf(m); is.uid != "" {
			byUID[is.uid] = append(byUID[is.uid], is)
		}
	}
	before := s.mistaken
	s.mistaken = map[string]string{}
	for _, m := range members {
		problem := Problem{Cluster: m.cluster, Candidate: m.source.candidate.Load(), Misidentified: true}
		key := problem.Candidate.key()
		message := before[key] // stands until a heartbeat was read with this credential
		if !m.Heartbeat().Heard.IsZero() {
			is := identityOf(m)
			problem.Err = misidentified(is, s.config.Cluster, uid, byUID[is.uid])
			m.misidentified.Store(&problem.Err)
			if message = ""; problem.Err != nil {
				message = problem.Err.Error()
			}
			if message != before[key] {
				s.config.Reporter.Report(problem)
			}
		}
		if message != "" {
			s.mistaken[key] = message
		}
	}
}

func identityOf(m *Member) identity {
	heard := m.Heartbeat()
	return identity{
		cluster: m.cluster, holder: heard.Cluster, uid: heard.KubeSystemUID,
		source: "the " + m.source.candidate.Load().Kind, pin: m.source.candidate.Load().Annotations[UIDAnnotation],
	}
}
