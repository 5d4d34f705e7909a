// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// An Object is an object of the local cluster that makes a cluster a member. It is shared and must not be changed.
type Object interface {
	metav1.Object
	runtime.Object
}

// A Candidate is a cluster that a source proposes as a member. It is immutable.
type Candidate struct {
	// Cluster is its id, which may be invalid, or that of another candidate.
	Cluster string
	// Source is the name of the Source that proposes it; empty for a flag, and for a Secret with ClusterLabel.
	Source string
	// Kind and Name name the candidate in messages and logs: the kind of an object and its namespace/name, or a flag and
	// the path of its file.
	Kind, Name string
	// Object is what Events are recorded on; nil if the candidate is no object of the local cluster.
	Object Object
	// Created orders candidates with the same id and trust: the oldest becomes the member, unless another is it already. A
	// candidate without a time precedes.
	Created time.Time
	// Annotations may be CIDRsAnnotation, RankAnnotation, scope.AcceptAnnotation and those of memberstate.
	Annotations map[string]string
	// Kubeconfig is not trusted: see ParseKubeconfig. That of a flag is the file with the path Name. Err is why there is none. A
	// candidate with an Err is a member, too.
	Kubeconfig []byte
	Err        error
}

// kindFlag is the Kind of the members that flags name.
const kindFlag = "flag --member"

// trust returns how much a candidate is trusted, most first: flags, Secrets in the controller's namespace, and objects of
// an inventory, which others may write.
func (c *Candidate) trust() int {
	switch {
	case c.Kind == kindFlag:
		return 0
	case c.Source == "":
		return 1
	default:
		return 2
	}
}

// String names the candidate.
func (c *Candidate) String() string {
	if c.Kind == kindFlag {
		return c.Name
	}
	return c.Kind + " " + c.Name
}

// key identifies the candidate among those of all sources, also after a restart. A new object with the name of a deleted
// one has its key.
func (c *Candidate) key() string {
	if c.Kind == kindFlag {
		return c.Cluster + " " + c.Name // flags may share a file
	}
	return c.Source + " " + c.String()
}

// candidates returns all candidates in the order of precedence: by trust, then those that are members already, by key,
// then by age. So an object takes the id of a member only if it is trusted more.
func candidates(config Config, of []*Candidate, members map[string]bool) []*Candidate {
	var all []*Candidate
	for _, static := range config.Static {
		all = append(all, &Candidate{Cluster: static.Cluster, Kind: kindFlag, Name: static.Kubeconfig})
	}
	for _, secret := range config.Local.Credentials() {
		all = append(all, ofSecret(secret))
	}
	all = append(all, of...)
	later := func(c *Candidate) int {
		if members[c.key()] {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b *Candidate) int {
		return cmp.Or(cmp.Compare(a.trust(), b.trust()), cmp.Compare(later(a), later(b)), a.Created.Compare(b.Created),
			cmp.Compare(a.Source, b.Source), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// ofSecret returns the candidate that a Secret with ClusterLabel is.
func ofSecret(secret *corev1.Secret) *Candidate {
	c := &Candidate{
		Cluster: secret.Labels[ClusterLabel], Kind: "Secret", Name: cache.MetaObjectToName(secret).String(), Object: secret,
		Created: secret.CreationTimestamp.Time, Annotations: secret.Annotations, Kubeconfig: secret.Data[KubeconfigKey],
	}
	if len(c.Kubeconfig) == 0 {
		c.Err = fmt.Errorf("the Secret has no data under the key %q: put the kubeconfig there", KubeconfigKey)
	}
	return c
}
