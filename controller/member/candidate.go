// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/cache"
)

// A Candidate is a cluster that a source proposes as a member. It is immutable.
type Candidate struct {
	// Cluster is its cluster id, which may be invalid, or the id of another candidate, too.
	Cluster string
	// Source is the name of the Source that proposes it; empty for a Secret with ClusterLabel.
	Source string
	// Kind and Name are the kind of an object and its namespace/name.
	Kind, Name string
	// Object is the object on which Events are recorded; nil if only the previous leader knew it. It is shared and must not be
	// changed.
	Object runtime.Object
	// Annotations may contain CIDRsAnnotation, RankAnnotation, scope.AcceptAnnotation and the annotations of memberstate.
	Annotations map[string]string
	// Kubeconfig is not trusted: see ParseKubeconfig. Err is why there is no kubeconfig. Even a candidate with an Err becomes a
	// member.
	Kubeconfig []byte
	Err        error
}

// String names the candidate.
func (c *Candidate) String() string { return c.Kind + " " + c.Name }

// key identifies the candidate among the candidates of all sources, even after a restart. An object that is deleted and created
// again keeps its key.
func (c *Candidate) key() string { return c.Source + " " + c.String() }

// sortByPrecedence sorts candidates: Secrets in the controller's namespace precede objects of an inventory, which others may
// write. Then those come first that were members before, and then the first by name. So an object takes over the id of a member
// only if it is trusted more.
func sortByPrecedence(all []*Candidate, before map[string]*Candidate) {
	rank := func(c *Candidate) (rank int) {
		if c.Source != "" {
			rank = 2
		}
		if was := before[c.Cluster]; was == nil || was.key() != c.key() {
			rank++
		}
		return rank
	}
	slices.SortStableFunc(all, func(a, b *Candidate) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Name, b.Name))
	})
}

// ofSecret returns the candidate for a Secret with ClusterLabel.
func ofSecret(secret *corev1.Secret) *Candidate {
	c := &Candidate{
		Cluster: secret.Labels[ClusterLabel], Kind: "Secret", Name: cache.MetaObjectToName(secret).String(), Object: secret,
		Annotations: secret.Annotations, Kubeconfig: secret.Data[KubeconfigKey],
	}
	if len(c.Kubeconfig) == 0 {
		c.Err = fmt.Errorf("the Secret has no data under the key %q: put the kubeconfig there", KubeconfigKey)
	}
	return c
}

// ValidateID returns an error unless id is a valid cluster id: one RFC 1123 label, or two joined with a dot, of at most
// 63 characters (KEP-2149), because it is a label value, too.
func ValidateID(id string) error {
	first, second, two := strings.Cut(id, ".")
	if len(id) > validation.LabelValueMaxLength || len(validation.IsDNS1123Label(first)) > 0 ||
		two && len(validation.IsDNS1123Label(second)) > 0 {
		return fmt.Errorf("cluster id %q: use a DNS label, or two joined with a dot, of at most %d characters", id, validation.LabelValueMaxLength)
	}
	return nil
}
