// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"sync"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/nodecache"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

// NodeCacheAnswers are what caches on nodes answered to pods.
type NodeCacheAnswers struct {
	// Asked tells whether AskNodeCaches ran.
	Asked   bool
	Answers []nodecache.Answer
	// Error is why they could not be asked.
	Error error
}

// AskNodeCaches has a pod in each cluster with NodeLocal DNSCache ask it. It is the only part of a check that creates
// something.
func (s *Set) AskNodeCaches(ctx context.Context, clusters []*cluster.Cluster, teller progress.Teller) {
	var group sync.WaitGroup
	for i, c := range s.Clusters {
		if reached(c) && len(c.NodeCaches) > 0 {
			group.Go(func() {
				c.NodeCacheAnswers.Asked = true
				c.NodeCacheAnswers.Answers, c.NodeCacheAnswers.Error = nodecache.Ask(ctx,
					nodecache.Options{Cluster: clusters[i], Zone: s.Zone, Teller: teller})
			})
		}
	}
	group.Wait()
}

var nodeLocalChecks = []Check{
	{
		Name: "node-local-dns", About: "the Corefile of NodeLocal DNSCache passes the zone on to the cluster's DNS",
		run: func(s *Set, c *Cluster) (found []problem) {
			for _, cache := range c.NodeCaches {
				corefile, err := cache.Corefile()
				if err != nil || corefile.Passes(s.Zone) {
					continue
				}
				found = append(found, wrong(s.passing(c, cache, corefile),
					"Pods cannot resolve names in %s: DaemonSet %s/%s answers their queries on each node, and its Corefile in "+
						"ConfigMap %s has no server block for the zone.",
					s.Zone, coredns.Namespace, cache.DaemonSet.Name, cache.ConfigMap.Name))
			}
			return found
		},
	},
	{
		Name: "node-local-answers", About: "a cache of NodeLocal DNSCache serves the zone to a pod (--node-local)",
		skip: func(_ *Set, c *Cluster) string {
			switch {
			case len(c.NodeCaches) == 0:
				return "The cluster has no NodeLocal DNSCache."
			case !c.NodeCacheAnswers.Asked:
				return "NodeLocal DNSCache is queried from a pod: add --node-local to create it."
			}
			return ""
		},
		run: func(s *Set, c *Cluster) (found []problem) {
			if err := c.NodeCacheAnswers.Error; err != nil {
				return []problem{odd("Resolve a name of the zone in a pod.", "NodeLocal DNSCache could not be queried: %v.", err)}
			}
			for _, answer := range c.NodeCacheAnswers.Answers {
				if !answer.Serves() {
					// It rereads its Corefile within minutes. A restart does not wait for that.
					found = append(found, wrong(c.kubectl("-n %s rollout restart daemonset %s", coredns.Namespace, answer.Cache),
						"The NodeLocal DNSCache of node %s, queried at %s by a pod, returns %s for zone %s.",
						answer.Node, answer.Server, answer.Text(), s.Zone))
				}
			}
			return found
		},
	},
}

// passing says how a cache comes to pass the zone on.
func (s *Set) passing(c *Cluster, cache coredns.Cache, corefile *coredns.Corefile) string {
	edit := fmt.Sprintf("dd this server block with `%s`.\n%s",
		c.kubectl("-n %s edit configmap %s", coredns.Namespace, cache.ConfigMap.Name), corefile.Passing(s.Zone))
	if c.Deployment == nil || coredns.OwnerOf(c.Deployment) != nil || c.Set != "" {
		return "A" + edit // coredns enable would refuse
	}
	command := s.enable(c)
	switch c.by(s) {
	case coredns.ByForward:
		command = "kubectl clusterset coredns enable --contexts " + c.Context + " --forward" + s.flag()
	case coredns.ByKubernetes:
		command = "kubectl clusterset coredns enable --contexts " + c.Context + s.flag()
	}
	return fmt.Sprintf("Run `%s --node-local`. Or a%s", command, edit)
}
