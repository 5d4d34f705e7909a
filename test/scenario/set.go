// SPDX-License-Identifier: Apache-2.0

// Package scenario has tests of whole cluster sets, written once for two beds: simulated clusters on virtual time
// (test/sim), and real control planes with accelerated clocks (test/controller).
//
// A scenario changes objects, breaks links and stops controllers through Set and Cluster. It states what clients of
// each cluster must see of each service as a View.
package scenario

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
	"github.com/clusterset-dns/clusterset-dns/test/steps"
)

// system is the namespace of the controllers.
const system = member.DefaultNamespace

// A Bed runs the clusters of a scenario.
type Bed interface {
	// Platforms returns clusters with these names, or ends the test. They have the CRDs, the namespace of the
	// controllers, and no objects of other scenarios.
	Platforms(t *testing.T, names []string) []Platform
	// Rate is the speed of the controllers' time, relative to real time.
	Rate() int
	// Cut blocks a direction between the reader and the API server of the source. Data sent over open connections
	// waits.
	Cut(reader, source string, direction network.Direction)
	// Restore undoes Cut; waiting data arrives.
	Restore(reader, source string)
	// Reset ends the connections; waiting data is lost.
	Reset(reader, source string)
}

// A Platform is a bed's part of a cluster.
type Platform struct {
	// Admin has all rights, Controller the rights of the controller, and DNS at least the rights of CoreDNS.
	Admin, Controller, DNS *rest.Config
	// Dial is that of the controller, nil for the default.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Credential returns a new kubeconfig with which a reader reads the cluster over the link between them.
	Credential func(reader string) []byte
	// Namespace is the namespace of the scenario's services.
	Namespace string
}

// A Scenario is a function on joined clusters with running controllers and DNS.
type Scenario struct {
	Name string
	// Clusters are the names of the clusters. "dual" is dual-stack, all others have IPv4 only.
	Clusters []string
	Run      func(*Set)
}

// A Set has the clusters of a running scenario.
type Set struct {
	*testing.T
	Bed
	clusters  []*Cluster
	namespace string
}

// NewSet returns clusters on a bed, with a namespace for services. The clusters are not joined, and nothing runs in them yet.
func NewSet(t *testing.T, bed Bed, names []string) *Set {
	set := &Set{T: t, Bed: bed}
	for i, platform := range bed.Platforms(t, names) {
		set.namespace = platform.Namespace
		set.clusters = append(set.clusters, set.newCluster(names[i], platform))
		set.clusters[i].CreateNamespace()
	}
	return set
}

// Start joins the clusters and starts their controllers and DNS.
func (s *Set) Start() {
	for _, p := range s.Pairs() {
		s.Join(p)
	}
	for _, c := range s.clusters {
		c.Start()
		c.StartDNS()
	}
}

// Stop stops all processes.
func (s *Set) Stop() {
	for _, c := range s.clusters {
		c.Stop()
		for _, each := range c.processes {
			each.Kill() // a replica that the scenario did not stop
		}
		c.StopDNS()
	}
}

// On runs the scenario on clusters with its names. Nothing may run in them before, and nothing runs in them after.
func (s Scenario) On(set *Set) {
	defer set.end()
	set.Start()
	s.Run(set)
	if set.Rate() == 1 {
		set.rests(slices.DeleteFunc(slices.Clone(set.clusters), func(c *Cluster) bool { return !c.Controller.Running() })...)
	}
}

// rests asserts that restarted controllers, which reconcile everything, write nothing: the decisions are the same as
// before.
func (s *Set) rests(clusters ...*Cluster) {
	s.Helper()
	s.Quiet(clusters...)
	before := written(clusters)
	for _, c := range clusters {
		c.Restart()
	}
	s.Pass(time.Minute)
	if after := written(clusters); before != after {
		s.Errorf("a restart wrote:\nbefore:\n%safter:\n%s", before, after)
	}
}

func (s *Set) end() {
	for _, p := range s.Pairs() {
		s.Restore(p.Reader.Name, p.Source.Name)
	}
	s.Stop()
	for _, c := range s.clusters {
		if err := s.clean(c); err != nil {
			s.Error(err)
		}
	}
}

// clean removes the remaining objects of a scenario.
func (s *Set) clean(c *Cluster) error {
	ctx, all := context.Background(), metav1.DeleteOptions{}
	var problems []error
	for _, namespace := range c.namespaces {
		problems = append(problems, ignoreNotFound(c.Kube.CoreV1().Namespaces().Delete(ctx, namespace, all)))
	}
	for _, node := range c.nodes {
		problems = append(problems, ignoreNotFound(c.Kube.CoreV1().Nodes().Delete(ctx, node, all)))
	}
	if c.described {
		problems = append(problems, c.Dynamic.Resource(properties).DeleteCollection(ctx, all, metav1.ListOptions{}))
	}
	return errors.Join(append(problems,
		c.Kube.CoreV1().Secrets(system).DeleteCollection(ctx, all,
			metav1.ListOptions{LabelSelector: member.ClusterLabel}),
		c.Kube.CoordinationV1().Leases(system).DeleteCollection(ctx, all, metav1.ListOptions{}),
	)...)
}

// Pass waits for a time of the controllers.
func (s *Set) Pass(d time.Duration) { <-time.After(d / time.Duration(s.Rate())) }

// Clusters returns all clusters, in the order of the scenario.
func (s *Set) Clusters() []*Cluster { return s.clusters }

// Cluster returns the cluster with this name.
func (s *Set) Cluster(name string) *Cluster {
	for _, c := range s.clusters {
		if c.Name == name {
			return c
		}
	}
	panic("no cluster " + name)
}

// A Pair is a controller and a member that it reads.
type Pair struct{ Reader, Source *Cluster }

// Pairs returns all pairs.
func (s *Set) Pairs() (pairs []Pair) {
	for _, reader := range s.clusters {
		for _, source := range s.clusters {
			if reader != source {
				pairs = append(pairs, Pair{reader, source})
			}
		}
	}
	return pairs
}

// Pair returns the pair with these names.
func (s *Set) Pair(reader, source string) Pair { return Pair{s.Cluster(reader), s.Cluster(source)} }

func (p Pair) secret() string { return "member-" + p.Source.Name }

// Join makes the source a member of the reader.
func (s *Set) Join(p Pair) {
	p.Reader.PutSecret(p.secret(), p.Source.Name, p.Source.platform.Credential(p.Reader.Name))
}

// Leave undoes Join.
func (s *Set) Leave(p Pair) {
	s.must(p.Reader.Kube.CoreV1().Secrets(system).Delete(s.Context(), p.secret(), metav1.DeleteOptions{}))
}

// everywhere allows all addresses of a member. Only probes need it.
const everywhere = "0.0.0.0/0,::/0"

// PutSecret creates or changes the Secret of a member.
func (c *Cluster) PutSecret(name, id string, kubeconfig []byte) *corev1.Secret {
	c.Put(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {namespace: %s, name: %s, labels: {%s: %s}, annotations: {%s: '%s'}}, data: {%s: %s}}",
		system, name, member.ClusterLabel, id, member.CIDRsAnnotation, everywhere, member.KubeconfigKey, base64.StdEncoding.EncodeToString(kubeconfig)))
	secret, err := c.Kube.CoreV1().Secrets(system).Get(c.set.Context(), name, metav1.GetOptions{})
	c.set.must(err)
	return secret
}

// edit changes the Secret with which a reader reads its member, with a merge patch.
func (s *Set) edit(p Pair, patch string) {
	_, err := p.Reader.Kube.CoreV1().Secrets(system).Patch(s.Context(), p.secret(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must(err)
}

// Annotate sets an annotation on this Secret, or removes it if the value is empty.
func (s *Set) Annotate(p Pair, key, value string) {
	text := "null"
	if value != "" {
		text = strconv.Quote(value)
	}
	s.edit(p, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, text))
}

// patience is the longest wait for a state, in the bed's time.
const patience = 10 * time.Minute

// Eventually waits until check returns nil.
func (s *Set) Eventually(what string, check func() error) {
	s.Helper()
	pause := 200 * time.Millisecond
	for left := patience; ; left -= pause {
		err := check()
		if err == nil {
			return
		}
		if left < 0 {
			s.Fatalf("%s: not within %s: %v%s", what, patience, err, steps.Here())
		}
		s.Pass(pause)
		pause = min(pause*3/2, 2*time.Second)
	}
}

// Becomes waits until a text has the wanted value.
func (s *Set) Becomes(what, want string, text func() (string, error)) {
	s.Eventually(what, func() error {
		got, err := text()
		if err == nil && got != want {
			err = fmt.Errorf("got %q, want %q", got, want)
		}
		return err
	})
}

func (s *Set) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%v%s", err, steps.Here())
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
