// SPDX-License-Identifier: Apache-2.0

// Package sim is a simulated cluster set: real controllers, and the plugin's real watch and index, on model API
// servers, a simulated network and virtual time.
//
// A scenario runs in Run. Virtual time advances only while all goroutines wait, so an idle hour costs nothing. A scenario
// changes objects and causes faults through Cluster and Network, advances time with Wait, and compares Cluster.See.
package sim

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// A ClusterSet has the clusters of a scenario, each a member of all others.
type ClusterSet struct {
	*scenario.Set
	// Network connects the controllers to other clusters. Its hosts are the names of the clusters.
	Network  *network.Network
	clusters []*Cluster
}

// Begin is the virtual time at which scenarios begin.
var Begin = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

// Run runs a scenario on joined clusters with running controllers and DNS. When Run returns, all of them have stopped.
func Run(t *testing.T, names []string, scenario func(t *testing.T, set *ClusterSet)) {
	t.Helper()
	RunIdle(t, names, func(t *testing.T, set *ClusterSet) {
		set.Start()
		scenario(t, set)
	})
}

// RunIdle is like Run, but the clusters are not joined and nothing runs in them yet.
func RunIdle(t *testing.T, names []string, run func(t *testing.T, set *ClusterSet)) {
	t.Helper()
	pki() // once, outside of the bubble
	withoutErrorHandlers()
	synctest.Test(t, func(t *testing.T) {
		Wait(time.Until(Begin))
		set := &ClusterSet{Network: network.New()}
		set.Set = scenario.NewSet(t, bed{set.Network, set}, names)
		defer func() {
			set.Stop()
			for _, cluster := range set.clusters {
				cluster.StartAPI() // a stopped or frozen API server would keep the bubble from ending
				cluster.stopServing()
			}
			Wait(2 * time.Second) // clients of a failed scenario end once no server answers
			synctest.Wait()
		}()
		for i, cluster := range set.clusters {
			cluster.Cluster = set.Set.Clusters()[i]
			cluster.Put("{apiVersion: v1, kind: Namespace, metadata: {name: " + member.DefaultNamespace + "}}\n---\n" + clusterset.CRDs)
		}
		run(t, set)
	})
}

// A bed gives scenarios access to the clusters. Its links are those of the network.
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

func (bed) Rate() int { return 1 }

// withoutErrorHandlers disables client-go's rate limit of errors, which sleeps until a millisecond after the last error
// of the process. That error may be in real time or another scenario's time, so the sleep could last hours.
var withoutErrorHandlers = sync.OnceFunc(func() { utilruntime.ErrorHandlers = nil })

// Wait advances virtual time.
func Wait(duration time.Duration) {
	<-time.After(duration)
}

// Clusters returns all clusters, in the order of the names passed to Run.
func (s *ClusterSet) Clusters() []*Cluster { return s.clusters }

// Cluster returns the cluster with this name.
func (s *ClusterSet) Cluster(name string) *Cluster {
	for _, cluster := range s.clusters {
		if cluster.Name == name {
			return cluster
		}
	}
	panic("no cluster " + name)
}
