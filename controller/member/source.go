// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/accept"
)

const (
	// ClusterLabel marks a Secret as the credential of a member. Its value is the member's id.
	ClusterLabel = "clusterset-dns.github.io/cluster"
	// CIDRsAnnotation on that Secret restricts the addresses of the member's endpoints to prefixes, separated by
	// commas.
	CIDRsAnnotation = "clusterset-dns.github.io/cidrs"
	// RankAnnotation on that Secret, or on the controller's namespace for the local cluster, ranks a cluster: see
	// ParseRank.
	RankAnnotation = "clusterset-dns.github.io/rank"
	// KubeconfigKey is the key of the kubeconfig in the Secret's data.
	KubeconfigKey = "kubeconfig"
)

// A Static is a member that a flag names.
type Static struct {
	// Cluster is the id of the member.
	Cluster string
	// Kubeconfig is the path of its kubeconfig. Context is the context to use in it; empty means the current one.
	Kubeconfig string
	Context    string
}

// A source is where the credential of one member comes from.
type source struct {
	cluster    string
	kubeconfig []byte // of a Secret; of a flag, a hash of the files
	static     Static
	secret     atomic.Pointer[corev1.Secret]  // the latest version, for Events
	cidrs      atomic.Pointer[[]netip.Prefix] // never nil
	rank       atomic.Int64
	accept     atomic.Pointer[accept.Patterns] // nil without the annotation
	credential Credential
	err        error
}

// String names the source in the log.
func (s *source) String() string {
	if secret := s.secret.Load(); secret != nil {
		return "Secret " + secret.Namespace + "/" + secret.Name
	}
	return s.static.Kubeconfig
}

// sameAs reports whether the member can keep its connection with the other source.
func (s *source) sameAs(other *source) bool {
	corrected := s.err != nil && other.err == nil
	return !corrected && s.static == other.static && bytes.Equal(s.kubeconfig, other.kubeconfig) &&
		(s.secret.Load() == nil) == (other.secret.Load() == nil)
}

// renew takes over the parts of a source that need no new connection, and reports whether they changed.
func (s *source) renew(from *source) bool {
	before, after := s.secret.Load(), from.secret.Load()
	s.secret.Store(after)
	changed := before != nil && !maps.Equal(before.Annotations, after.Annotations)
	if from.err == nil {
		cidrs := s.cidrs.Swap(from.cidrs.Load())
		changed = changed || !slices.Equal(*cidrs, *s.cidrs.Load())
		s.rank.Store(from.rank.Load())
		s.accept.Store(from.accept.Load())
	}
	return changed
}

// ParseCIDRs parses the value of CIDRsAnnotation. The prefixes are masked; none means no restriction.
func ParseCIDRs(text string) ([]netip.Prefix, error) {
	var cidrs []netip.Prefix
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		prefix, err := netip.ParsePrefix(word)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", CIDRsAnnotation, err)
		}
		cidrs = append(cidrs, prefix.Masked())
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
		return LastRank, fmt.Errorf("annotation %s: %.100q is not an integer from %d to %d", RankAnnotation, text,
			-maxRank, maxRank)
	}
	return rank, nil
}

// gather returns the members that flags and Secrets name. A credential with invalid content still makes its cluster a
// member; a credential with an invalid id does not. parsed are the sources of the Secrets that were parsed before, and
// is replaced: a Secret that did not change is not parsed again.
func gather(config Config, parsed *map[*corev1.Secret]*source) (map[string]*source, []Problem) {
	sources, before := map[string]*source{}, *parsed
	*parsed = map[*corev1.Secret]*source{}
	var problems []Problem
	for _, static := range config.Static {
		problem := Problem{Cluster: static.Cluster, Refused: true}
		if problem.Err = admit(config.Cluster, static.Cluster, sources); problem.Err != nil {
			problems = append(problems, problem)
			continue
		}
		s := &source{cluster: static.Cluster, static: static}
		s.cidrs.Store(&[]netip.Prefix{})
		s.credential, s.err = LoadKubeconfig(static.Kubeconfig, static.Context)
		s.kubeconfig = fingerprint(static, s.credential)
		if problem.Err = s.err; s.err != nil {
			problems = append(problems, problem)
		}
		sources[static.Cluster] = s
	}
	secrets := slices.Clone(config.Local.Credentials())
	slices.SortFunc(secrets, func(a, b *corev1.Secret) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, secret := range secrets {
		cluster := secret.Labels[ClusterLabel]
		problem := Problem{Cluster: cluster, Secret: secret, Refused: true}
		if problem.Err = admit(config.Cluster, cluster, sources); problem.Err != nil {
			problems = append(problems, problem)
			continue
		}
		s := before[secret]
		if s == nil {
			s = parse(cluster, secret)
		}
		(*parsed)[secret] = s
		if problem.Err = s.err; s.err != nil {
			problems = append(problems, problem)
		}
		sources[cluster] = s
	}
	return sources, problems
}

// fingerprint returns a hash of the files that connections depend on. The token file is not one of them: client-go reads
// it again every minute.
func fingerprint(static Static, credential Credential) []byte {
	files := []string{static.Kubeconfig}
	if config := credential.Config; config != nil {
		files = append(files, config.CAFile, config.CertFile, config.KeyFile)
	}
	hash := sha256.New()
	for _, file := range files {
		sum := sha256.Sum256(content(nil, file))
		hash.Write(sum[:])
	}
	return hash.Sum(nil)
}

// parse returns the source that a Secret is.
func parse(cluster string, secret *corev1.Secret) *source {
	s := &source{cluster: cluster, kubeconfig: secret.Data[KubeconfigKey]}
	s.secret.Store(secret)
	if len(s.kubeconfig) == 0 {
		s.err = fmt.Errorf("the Secret has no data under the key %q: put the kubeconfig there", KubeconfigKey)
	} else {
		s.credential, s.err = ParseKubeconfig(s.kubeconfig)
	}
	cidrs, err := ParseCIDRs(secret.Annotations[CIDRsAnnotation])
	s.cidrs.Store(&cidrs)
	rank, rankErr := ParseRank(secret.Annotations)
	s.rank.Store(int64(rank))
	patterns, acceptErr := parseAccept(secret.Annotations)
	s.accept.Store(patterns)
	s.err = cmp.Or(s.err, err, rankErr, acceptErr)
	return s
}

// parseAccept parses the annotation accept.Annotation, nil if there is none. If it is invalid, everything is accepted
// with the error: nothing new is read of such a member, and its copies were accepted before.
func parseAccept(annotations map[string]string) (*accept.Patterns, error) {
	text, found := annotations[accept.Annotation]
	if !found {
		return nil, nil
	}
	patterns, err := accept.Parse(text)
	if err != nil {
		return &accept.All, fmt.Errorf("annotation %s: %w", accept.Annotation, err)
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
	switch first := sources[cluster]; {
	case first == nil:
		return nil
	case first.secret.Load() == nil:
		return fmt.Errorf("cluster id %q is already that of a member named by a flag", cluster)
	default:
		return errors.New("cluster id " + cluster + " is already that of the older Secret " + first.secret.Load().Name +
			": delete one of the two")
	}
}
