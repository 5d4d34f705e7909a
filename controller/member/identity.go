// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"fmt"
	"maps"
	"slices"

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

// UIDAnnotation on the Secret of a member is the UID of its namespace kube-system, as join read it there. If a hostile member
// claims the UID of another member, the annotation of the other member proves the owner.
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

// identities are what is known of who the members are.
type identities struct {
	of map[string]identity // by cluster
	// byUID are the clusters whose heartbeats have the same UID, if they have one.
	byUID map[string]map[string]struct{}
	// reported are the last reports, by Candidate.key.
	reported map[string]string
}

func newIdentities() identities {
	return identities{of: map[string]identity{}, byUID: map[string]map[string]struct{}{}, reported: map[string]string{}}
}

// note replaces the identity of a cluster.
func (i *identities) note(is identity) {
	before := i.of[is.cluster].uid
	if delete(i.byUID[before], is.cluster); len(i.byUID[before]) == 0 {
		delete(i.byUID, before)
	}
	i.of[is.cluster] = is
	switch {
	case is.uid == "":
	case i.byUID[is.uid] == nil:
		i.byUID[is.uid] = map[string]struct{}{is.cluster: {}}
	default:
		i.byUID[is.uid][is.cluster] = struct{}{}
	}
}

// withUID returns the identities with a UID, sorted by cluster.
func (i *identities) withUID(uid string) []identity {
	var same []identity
	for _, cluster := range slices.Sorted(maps.Keys(i.byUID[uid])) {
		same = append(same, i.of[cluster])
	}
	return same
}

// identifyAll compares the ids in heartbeats with those of the credentials and reports differences, once and when they
// are resolved. It removes nothing.
func (s *Members) identifyAll() {
	s.identifying.Lock()
	defer s.identifying.Unlock()
	reported := s.identities.reported
	s.identities = newIdentities()
	members := s.List()
	for _, m := range members {
		s.identities.note(identityOf(m))
	}
	for _, m := range members {
		s.compare(m, reported)
	}
}

// identify is identifyAll after the ids in the heartbeat of one member changed. Only members that had or have its UID
// are concerned.
func (s *Members) identify(cluster string) {
	s.identifying.Lock()
	defer s.identifying.Unlock()
	m := s.Get(cluster)
	if m == nil {
		return
	}
	concerned := map[string]struct{}{cluster: {}}
	maps.Copy(concerned, s.identities.byUID[s.identities.of[cluster].uid])
	is := identityOf(m)
	s.identities.note(is)
	maps.Copy(concerned, s.identities.byUID[is.uid])
	for _, cluster := range slices.Sorted(maps.Keys(concerned)) {
		if m := s.Get(cluster); m != nil {
			s.compare(m, s.identities.reported)
		}
	}
}

// compare compares the ids of one member, and reports the result unless it was reported before.
func (s *Members) compare(m *Member, reported map[string]string) {
	problem := Problem{Cluster: m.cluster, Candidate: m.source.candidate.Load(), Misidentified: true}
	key := problem.Candidate.key()
	before := reported[key]
	if m.Heartbeat().Heard.IsZero() {
		// No heartbeat was read with this credential yet: the last report stands.
		if before != "" {
			s.identities.reported[key] = before
		}
		return
	}
	is := s.identities.of[m.cluster]
	problem.Err = misidentified(is, s.config.Cluster, s.config.Local.KubeSystemUID(), s.identities.withUID(is.uid))
	m.misidentified.Store(&problem.Err)
	message := ""
	if delete(s.identities.reported, key); problem.Err != nil {
		message = problem.Err.Error()
		s.identities.reported[key] = message
	}
	if message != before {
		s.config.Reporter.Report(problem)
	}
}

func identityOf(m *Member) identity {
	heard := m.Heartbeat()
	return identity{
		cluster: m.cluster, holder: heard.Cluster, uid: heard.KubeSystemUID,
		source: "the " + m.source.candidate.Load().Kind, pin: m.source.candidate.Load().Annotations[UIDAnnotation],
	}
}
