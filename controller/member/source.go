// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

const (
	// ClusterLabel on the Secret of a member: id of the member.
	ClusterLabel = "clusterset-dns.github.io/cluster"
	// CIDRsAnnotation on the Secret of a member: permitted ranges of the member's endpoints, as prefixes, separated by
	// commas; by default all, and the member is not probed. The command join sets it.
	CIDRsAnnotation = "clusterset-dns.github.io/cidrs"
	// RankAnnotation on the Secret of a member: precedence in conflicts, from -1000 to 1000, by default 0; lower wins. On the
	// controller's namespace, that of the local cluster.
	RankAnnotation = "clusterset-dns.github.io/rank"
	// KubeconfigKey is the key of the kubeconfig in the Secret's data.
	KubeconfigKey = "kubeconfig"
)

// A Static is a member that a flag names.
type Static struct {
	// Cluster is the id of the member.
	Cluster string
	// Kubeconfig is the path of its kubeconfig, of which the current context is used.
	Kubeconfig string
}

// A source is a candidate that became a member, with its credential.
type source struct {
	candidate  atomic.Pointer[Candidate] // the latest version, for Events; never nil
	settings   atomic.Pointer[settings]  // never nil
	credential Credential
	err        error
	// unread is set if the member cannot be read: the credential is invalid, or an annotation and no valid value of it is
	// known.
	unread bool
}

// settings are what the annotations of a member mean. They are immutable.
type settings struct {
	cidrs  []netip.Prefix
	rank   int
	accept *scope.Patterns // nil without the annotation
}

// keeps reports whether the member keeps its connection, or stays unread, when the other source follows. An unusable
// credential removes nothing.
func (s *source) keeps(other *source) bool {
	is, will := s.candidate.Load(), other.candidate.Load()
	return other.unread || !s.unread && is.Kind == will.Kind &&
		bytes.Equal(s.credential.kubeconfig, other.credential.kubeconfig)
}

// renew takes over the parts of a source that need no new connection, and reports whether they changed.
func (s *source) renew(from *source) bool {
	after := from.candidate.Load()
	s.settings.Store(from.settings.Load())
	return !maps.Equal(s.candidate.Swap(after).Annotations, after.Annotations)
}

// An AnnotationError is an annotation with an invalid value.
type AnnotationError struct {
	Key string
	Err error
}

// Error implements error.
func (e *AnnotationError) Error() string { return "annotation " + e.Key + ": " + e.Err.Error() }

// parseCIDRs parses the annotation CIDRsAnnotation, nil without it. The prefixes are masked. A value without a prefix is
// invalid, as a script writes that does not know the ranges: it does not lift the restriction.
func parseCIDRs(annotations map[string]string) ([]netip.Prefix, error) {
	text, found := annotations[CIDRsAnnotation]
	if !found {
		return nil, nil
	}
	var cidrs []netip.Prefix
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		prefix, err := netip.ParsePrefix(word)
		if err != nil {
			return nil, &AnnotationError{CIDRsAnnotation, err}
		}
		cidrs = append(cidrs, prefix.Masked())
	}
	if len(cidrs) == 0 {
		return nil, &AnnotationError{CIDRsAnnotation, fmt.Errorf("%.100q has no prefix: name the ranges of the member's pods", text)}
	}
	return cidrs, nil
}

// Ranks of clusters. LastRank is the rank of a cluster with an invalid annotation.
const (
	maxRank  = 1000
	LastRank = maxRank + 1
)

// ParseRank parses the annotation RankAnnotation. In conflicts, exports of a cluster with a lower rank precede. Without
// the annotation the rank is 0. If the value is not an integer from -1000 to 1000 it is LastRank, so that a typing
// error gives no cluster precedence.
func ParseRank(annotations map[string]string) (int, error) {
	text, found := annotations[RankAnnotation]
	if !found {
		return 0, nil
	}
	rank, err := strconv.Atoi(text)
	if err != nil || rank < -maxRank || rank > maxRank {
		return LastRank, &AnnotationError{
			RankAnnotation, fmt.Errorf("%.100q is not an integer from %d to %d", text, -maxRank, maxRank),
		}
	}
	return rank, nil
}

// Refused returns the problems of the credentials that are not used, or not as they are. The list is shared.
func (s *Members) Refused() []Problem {
	if problems := s.refused.Load(); problems != nil {
		return *problems
	}
	return nil
}

// gather returns the members among the candidates: those of flags, Secrets, and of other sources. A credential with
// invalid content still makes its cluster a member; a credential with an invalid id does not. keys are those of the
// candidates that are members already, and connected are the members.
func gather(config Config, of []*Candidate, keys map[string]bool, connected map[string]*Member) (map[string]*source, []Problem) {
	sources := map[string]*source{}
	var problems []Problem
	for _, candidate := range candidates(config, of, keys) {
		if candidate.Source != "" && candidate.Cluster == config.Cluster {
			continue // an inventory has the local cluster, too
		}
		problem := Problem{Candidate: candidate, Refused: true}
		if problem.Err = admit(config.Cluster, candidate.Cluster, sources); problem.Err != nil {
			problems = append(problems, problem)
			continue
		}
		s := parse(candidate, connected[candidate.Cluster])
		if problem.Err = s.err; s.err != nil {
			problems = append(problems, problem)
		}
		sources[candidate.Cluster] = s
	}
	return sources, problems
}

// parse returns the source that a candidate is. While an annotation is invalid, or a file cannot be read, the settings of
// the member stay, if there are any, so that a renewed token is used nevertheless.
func parse(candidate *Candidate, member *Member) *source {
	s := &source{}
	s.candidate.Store(candidate)
	switch {
	case candidate.Err != nil:
		s.err = candidate.Err
	case candidate.Kind == kindFlag:
		s.credential, s.err = LoadKubeconfig(candidate.Name)
	default:
		s.credential, s.err = ParseKubeconfig(candidate.Kubeconfig)
	}
	if candidate.Kind == kindFlag {
		with := *candidate
		if with.Annotations = s.credential.Annotations; s.err != nil && member != nil {
			with.Annotations = member.Annotations() // those of a file that cannot be read stay
		}
		candidate = &with
		s.candidate.Store(candidate)
	}
	is, errs := settings{}, [3]error{}
	is.cidrs, errs[0] = parseCIDRs(candidate.Annotations)
	is.rank, errs[1] = ParseRank(candidate.Annotations)
	is.accept, errs[2] = parseAccept(candidate.Annotations)
	s.settings.Store(&is)
	s.unread = s.err != nil
	if invalid := cmp.Or(errs[:]...); invalid != nil {
		s.err = cmp.Or(s.err, invalid)
		if known := member != nil && !member.source.unread; known {
			s.settings.Store(member.source.settings.Load())
		} else {
			s.unread = true
		}
	}
	return s
}

// parseAccept parses the annotation scope.AcceptAnnotation, nil if there is none. If it is invalid, everything is accepted
// with the error: nothing new is read of such a member, and its copies were accepted before.
func parseAccept(annotations map[string]string) (*scope.Patterns, error) {
	text, found := annotations[scope.AcceptAnnotation]
	if !found {
		return nil, nil
	}
	patterns, err := scope.ParsePatterns(text)
	if err != nil {
		return &scope.AllServices, &AnnotationError{scope.AcceptAnnotation, err}
	}
	return &patterns, nil
}

// admit returns an error if a cluster id cannot become a member.
func admit(own, cluster string, sources map[string]*source) error {
	if err := ValidateID(cluster); err != nil {
		return err
	}
	if cluster == own {
		return fmt.Errorf("cluster id %q is that of this cluster: a member needs an id of its own", cluster)
	}
	if sources[cluster] == nil {
		return nil
	}
	first := sources[cluster].candidate.Load()
	if first.Kind == kindFlag {
		return fmt.Errorf("cluster id %q is already that of a member named by a flag", cluster)
	}
	return fmt.Errorf("cluster id %s is already that of %s: delete one of the two, or correct its id", cluster, first)
}
