// SPDX-License-Identifier: Apache-2.0

// Package sim is a simulated cluster set: whole controllers and the plugin's real watch and index, on model API
// servers, a simulated network and virtual time.
//
// A scenario runs in Run, where time passes only while everything waits: an hour costs as much as what happens in it.
// It changes objects and breaks things through Cluster and Network, lets time pass with Wait, and looks at Cluster.See.
package sim

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// A ClusterSet is the clusters of a scenario, each a member of all others.
type ClusterSet struct {
	*scenario.Set
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

// RunIdle is Run with clusters that are not joined and in which nothing runs yet.
func RunIdle(t *testing.T, names []string, run func(t *testing.T, set *ClusterSet)) {
	t.Helper()
	pki() // outside of the bubble, once
	withoutErrorHandlers()
	synctest.Test(t, func(t *testing.T) {
		Wait(time.Until(Begin))
		set := &ClusterSet{Network: network.New()}
		set.Set = scenario.NewSet(t, bed{set.Network, set}, names)
		defer func() {
			set.Stop()
			for _, cluster := range set.clusters {
				cluster.StartAPI() // or it does not end
				cluster.stopServing()
			}
			Wait(2 * time.Second) // clients that a failed scenario left end once no server answers
			synctest.Wait()
		}()
		for i, cluster := range set.clusters {
			cluster.Cluster = set.Set.Clusters()[i]
			cluster.Put("{apiVersion: v1, kind: Namespace, metadata: {name: " + member.DefaultNamespace + "}}")
		}
		run(t, set)
	})
}

// A bed is what a scenario has of the clusters. Its links are those of the network.
type bed struct {
	*network.Network
	set *ClusterSet
}

func (b bed) Platforms(t *testing.T, names []string) (platforms []scenario.Platform) {
	for i, name := range names {
		c := newCluster(t, b.Network, name, i)
		b.set.clusters, platforms = append(b.set.clusters, c), append(platforms, c.platform())
	}
	return platforms
}

func (bed) Pass(d time.Duration) { Wait(d) }

func (bed) Rate() int { return 1 }

func (b bed) Through(_ *testing.T, reader, source string, gateway *scenario.Gateway) []byte {
	from := b.set.Cluster(source)
	from.API.SetFault(reader, func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
		asked := req.Clone(req.Context())
		gateway.Ask(asked.Header)
		response, err := serve(asked)
		if err == nil {
			err = gateway.Answer(response)
		}
		return response, err
	})
	return from.Kubeconfig(reader)
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
