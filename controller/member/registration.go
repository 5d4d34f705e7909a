// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

const (
	// ClusterLabel on the Secret of a member: id of the member.
	ClusterLabel = "clusterset-dns.github.io/cluster"
	// CIDRsAnnotation on the Secret of a member: permitted ranges of the member's endpoints, as prefixes, separated by
	// commas; by default all, and the member is not probed. The command join sets it.
	CIDRsAnnotation = "clusterset-dns.github.io/cidrs"
	// RankAnnotation on the Secret of a member: precedence in conflicts, from -1000 to 1000, by default 0; lower wins. On the
	// controller's namespace: rank of the local cluster.
	RankAnnotation = "clusterset-dns.github.io/rank"
	// KubeconfigKey is the key of the kubeconfig in the Secret's data.
	KubeconfigKey = "kubeconfig"
)

// A registration is a candidate that became a member, with its credential. It is immutable once it is stored in a Member.
type registration struct {
	candidate *Candidate
	settings
	credential Credential
	// unread is set if the member cannot be read: the credential is invalid, or an annotation is invalid and never was valid.
	unread bool
}

// settings are the parsed annotations of a member.
type settings struct {
	cidrs  []netip.Prefix
	rank   int
	accept *scope.Patterns // nil without the annotation
}

// keeps reports whether the member keeps its connection, or stays unread, when other replaces r. An unusable credential ends no
// connection.
func (r *registration) keeps(other *registration) bool {
	return other.unread || !r.unread && bytes.Equal(r.credential.kubeconfig, other.credential.kubeconfig)
}

// An AnnotationError reports an annotation with an invalid value.
type AnnotationError struct {
	Key string
	Err error
}

// Error implements error.
func (e *AnnotationError) Error() string { return "annotation " + e.Key + ": " + e.Err.Error() }

// parseCIDRs parses the annotation CIDRsAnnotation, nil without it. The prefixes are masked. A value without a prefix is
// invalid and does not lift the restriction: a script that does not know the ranges may write it.
func parseCIDRs(annotations map[string]string) ([]netip.Prefix, error) {
	text, found := annotations[CIDRsAnnotation]
	if !found {
		return nil, nil
	}
	var cidrs []netip.Prefix
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == ',' || c == ' ' }) {
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

// ParseRank parses the annotation RankAnnotation. In conflicts, the export of the cluster with the lower rank wins. Without the
// annotation the rank is 0. If the value is not an integer from -1000 to 1000 it is LastRank, so that a typo gives no cluster
// precedence.
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

// Refused returns the problems of credentials that are not used, or used with previous annotations. The list is shared.
func (s *Members) Refused() []Problem {
	return ptr.Deref(s.refused.Load(), nil)
}

// gather returns the registrations of all members, by cluster, and the problems of candidates. A credential with invalid content
// still makes its cluster a member; a credential with an invalid id does not. before are the candidates of the last members and
// connected the current members, both by cluster.
func gather(config Config, all []*Candidate, before map[string]*Candidate, connected map[string]*Member) (map[string]*registration, []Problem) {
	registered := map[string]*registration{}
	var problems []Problem
	sortByPrecedence(all, before)
	for _, candidate := range all {
		if candidate.Source != "" && candidate.Cluster == config.Cluster {
			continue // an inventory lists the local cluster, too
		}
		problem := Problem{Candidate: candidate, Refused: true}
		if problem.Err = admit(config.Cluster, candidate.Cluster, registered); problem.Err == nil {
			registered[candidate.Cluster], problem.Err = parse(config.Tokens, candidate, connected[candidate.Cluster])
		}
		if problem.Err != nil {
			problems = append(problems, problem)
		}
	}
	return registered, problems
}

// parse returns the registration for a candidate, and its first problem. While an annotation is invalid, the member keeps its
// settings, if it has any, so that a renewed token is used nevertheless.
func parse(tokens string, candidate *Candidate, member *Member) (r *registration, err error) {
	r = &registration{candidate: candidate}
	if err = candidate.Err; err == nil {
		r.credential, err = ParseKubeconfig(candidate.Kubeconfig)
	}
	if c := r.credential.Config; err == nil && tokens != "" && c.BearerToken == "" && c.Username == "" && len(c.CertData) == 0 {
		c.BearerTokenFile = filepath.Join(tokens, candidate.Cluster)
		if _, err = newHTTPClient(c); err != nil {
			err = fmt.Errorf("its kubeconfig has no credential, and --member-tokens (value memberTokens of the chart) has no token for it: %w", err)
		}
	}
	r.unread = err != nil
	var errs [3]error
	r.cidrs, errs[0] = parseCIDRs(candidate.Annotations)
	r.rank, errs[1] = ParseRank(candidate.Annotations)
	r.accept, errs[2] = parseAccept(candidate.Annotations)
	if invalid := cmp.Or(errs[:]...); invalid != nil {
		err = cmp.Or(err, invalid)
		if known := member != nil && !member.registration.Load().unread; known {
			r.settings = member.registration.Load().settings
		} else {
			r.unread = true
		}
	}
	return r, err
}

// parseAccept parses the annotation scope.AcceptAnnotation, nil if there is none. If it is invalid, parseAccept returns
// AllServices and an error: nothing new is read from such a member, and its copies were accepted before.
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
func admit(own, cluster string, registered map[string]*registration) error {
	if err := ValidateID(cluster); err != nil {
		return err
	}
	if cluster == own {
		return fmt.Errorf("cluster id %q is that of this cluster: a member needs an id of its own", cluster)
	}
	if registered[cluster] == nil {
		return nil
	}
	return fmt.Errorf("cluster id %s is already that of %s: delete one of the two, or correct its id", cluster, registered[cluster].candidate)
}
