// SPDX-License-Identifier: Apache-2.0

// Package sim is a simulated cluster set: whole controllers and the plugin's real watch and index, on model API
// servers, a simulated network and virtual time.
//
// A scenario runs in Run, where time passes only while everything waits: an hour costs as much as what happens in it.
// It changes objects and breaks things through Cluster and Network, lets time pass with Wait, and looks at Cluster.See.
package sim

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	selfsigned "github.com/clusterset-dns/clusterset-dns/test/pki"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// A ClusterSet is the clusters of a scenario, each a member of all others.
type ClusterSet struct {
	// Network is what the controllers reach other clusters over. Its hosts are the names of the clusters.
	Network  *network.Network
	clusters []*Cluster
}

// Begin is when a scenario begins.
var Begin = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

// Run runs a scenario on clusters that are joined and whose controllers and DNS
// run. What runs in them has ended when it returns.
func Run(t *testing.T, names []string, scenario func(t *testing.T, set *ClusterSet)) {
	t.Helper()
	RunIdle(t, names, func(t *testing.T, set *ClusterSet) {
		set.Start()
		scenario(t, set)
	})
}

// Start joins the clusters and starts their controllers and DNS.
func (s *ClusterSet) Start() {
	for _, reader := range s.clusters {
		for _, source := range s.clusters {
			if reader != source {
				reader.join(source)
			}
		}
	}
	for _, cluster := range s.clusters {
		cluster.StartController()
		cluster.StartDNS()
	}
}

// RunIdle is Run with clusters that are not joined and in which nothing runs yet.
func RunIdle(t *testing.T, names []string, scenario func(t *testing.T, set *ClusterSet)) {
	t.Helper()
	pki() // outside of the bubble, once
	withoutErrorHandlers()
	synctest.Test(t, func(t *testing.T) {
		Wait(time.Until(Begin))
		set := &ClusterSet{Network: network.New()}
		for i, name := range names {
			set.clusters = append(set.clusters, newCluster(t, set.Network, name, i))
		}
		defer func() {
			for _, cluster := range set.clusters {
				cluster.StopController()
				for _, each := range cluster.controllers {
					each.Kill() // one that the scenario left
				}
				cluster.StopDNS()
				cluster.StartAPI() // or it does not end
				cluster.stopServing()
			}
			Wait(2 * time.Second) // clients that a failed scenario left end once no server answers
			synctest.Wait()
		}()
		scenario(t, set)
	})
}

// withoutErrorHandlers keeps client-go from its rate limit of errors: it sleeps until a millisecond after the last
// error of the process, whose time is the real one or that of another scenario, and so for hours.
var withoutErrorHandlers = sync.OnceFunc(func() { utilruntime.ErrorHandlers = nil })

// Wait lets virtual time pass.
func Wait(duration time.Duration) {
	<-time.After(duration)
}

// Clusters are all, in the order that Run was given.
func (s *ClusterSet) Clusters() []*Cluster { return s.clusters }

// Cluster returns the cluster of a name.
func (s *ClusterSet) Cluster(name string) *Cluster {
	for _, cluster := range s.clusters {
		if cluster.Name == name {
			return cluster
		}
	}
	panic("no cluster " + name)
}

// everywhere are the ranges of a member that only probes need.
const everywhere = "0.0.0.0/0,::/0"

// join gives c the credential to read source.
func (c *Cluster) join(source *Cluster) {
	c.PutSecret("member-"+source.Name, source.Name, source.Kubeconfig(c.Name))
	c.Put(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {namespace: %s, name: member-%s, annotations: {%s: '%s'}}}",
		member.DefaultNamespace, source.Name, member.CIDRsAnnotation, everywhere))
}

// Kubeconfig returns one with which a reader reaches the cluster over the network.
func (c *Cluster) Kubeconfig(reader string) []byte {
	text, err := selfsigned.Kubeconfig("member", "https://"+c.Name, pki().authority, "token-of-"+reader, member.DefaultNamespace)
	if err != nil {
		panic(err) // it has no reason to fail
	}
	return text
}

// Config reaches the API server with all rights, not over the network.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }
