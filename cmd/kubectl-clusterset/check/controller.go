// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"maps"
	"slices"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// maxRank is the greatest valid rank: see controller/member.
const maxRank = 1000

// controllerChecks are about what controllers say.
var controllerChecks = []Check{
	{Name: "controller", About: "the controller answers, and renews its heartbeat", run: func(_ *Set, c *Cluster) []problem {
		fix := "Start clusterset-controller in namespace " + c.System + ". If it runs, find the cause in its logs: `" +
			c.kubectl("-n %s logs -l app.kubernetes.io/component=controller --prefix --tail=200", c.System) + "`."
		switch {
		case c.State == nil && errors.Is(c.Unidentified, cluster.ErrNeverRan):
			return []problem{wrong("Install it, or set its namespace with --system-namespace: `"+
				c.chart("install", "--create-namespace --set clusterId=<id> --set image.registry=<registry>")+"`. "+fix,
				"The controller has never run in namespace %s.", c.System)}
		case c.State == nil:
			return []problem{wrong(fix, "The controller does not say what it knows: %v.", c.StateError)}
		case c.State.HeartbeatStopped != "":
			return []problem{wrong(fix, "The controller does not renew its heartbeat (%s), so other clusters demote the endpoints of "+
				"this one.", c.State.HeartbeatStopped)}
		}
		return nil
	}},
	{Name: "cluster-id", About: "the cluster id is unique", run: func(s *Set, c *Cluster) []problem {
		for _, other := range s.others(c) {
			if c.ID != "" && other.ID == c.ID {
				return []problem{wrong(c.chart("upgrade", "--reset-then-reuse-values --set clusterId=<new id>"),
					"The cluster of context %s has the id %s, too.", other.Context, c.ID)}
			}
		}
		return nil
	}},
	{
		Name: "joined", About: "each cluster has a credential of every other cluster", skip: silent,
		run: func(s *Set, c *Cluster) (found []problem) {
			for _, other := range s.others(c) {
				if _, is := c.ranks()[other.ID]; other.ID != "" && !is {
					found = append(found, wrong("kubectl clusterset join "+c.Context+" "+other.Context+c.system(),
						"There is no credential of %s, so nothing is imported from it.", other.ID))
				}
			}
			return found
		},
	},
	{
		Name: "ranks-agree", About: "clusters have the same rank in all clusters", skip: silent,
		run: func(s *Set, c *Cluster) (found []problem) {
			first := s.Clusters[slices.IndexFunc(s.Clusters, func(each *Cluster) bool { return each.State != nil })]
			there, here := first.ranks(), c.ranks()
			for _, id := range slices.Sorted(maps.Keys(here)) {
				if rank, known := there[id]; known && rank != here[id] && max(rank, here[id]) <= maxRank {
					found = append(found, odd("Set the annotation clusterset-dns.github.io/rank of "+id+" to the same value: in its own cluster "+
						"on namespace "+c.System+", in all others on the Secret of the member.",
						"The rank of %s is %d in %s, but %d in %s, so they may import the same exports differently.", id, here[id], c.ID,
						rank, first.ID))
				}
			}
			return found
		},
	},
	{Name: "findings", About: "the controller reports no problem", skip: silent, run: func(_ *Set, c *Cluster) (all []problem) {
		for _, each := range c.State.Findings {
			all = append(all, problem{name: each.Name, warning: each.Severity == state.Warning, what: each.What, fix: each.Fix})
		}
		return all
	}},
}

// silent is why it is unknown what the controller knows.
func silent(_ *Set, c *Cluster) string {
	if c.State == nil {
		return "The controller does not answer."
	}
	return ""
}

// ranks are the ranks in conflicts that a cluster gives to itself and to its members, by their ids.
func (c *Cluster) ranks() map[string]int {
	ranks := map[string]int{c.ID: c.State.Rank}
	for i := range c.State.Members {
		ranks[c.State.Members[i].Cluster] = c.State.Members[i].Rank
	}
	return ranks
}
