// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/setup"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// maxRank is the greatest valid rank: see controller/member.
const maxRank = 1000

// maxSkew is the difference of two clocks that is reported. It is far above the precision with which they are read.
const maxSkew = 30 * time.Second

var apiChecks = []Check{
	{
		Name: "api-reachable", About: "the API server answers", before: true, unreached: true,
		run: func(_ *Set, c *Cluster, found *problems) {
			if c.Unreachable != nil {
				found.fail("Make sure that the API server at "+c.Config.Host+" is up, or correct the address and credentials of context "+
					c.Context+" in your kubeconfig.", "The API server is unreachable: %v", c.Unreachable)
			}
		},
	},
	{Name: "api-version", About: "Kubernetes is 1.35 or newer", before: true, run: func(_ *Set, c *Cluster, found *problems) {
		switch is, err := version.ParseGeneric(c.Version); {
		case err != nil:
			found.skip("Its version is unknown: %v.", err)
		case is.LessThan(version.MajorMinor(1, 35)):
			found.fail("Upgrade Kubernetes to 1.35 or newer.", "Kubernetes %s is not supported.", c.Version)
		}
	}},
	{Name: "clock", About: "the clocks of all API servers agree", before: true, run: func(s *Set, c *Cluster, found *problems) {
		for _, other := range s.others(c, found) {
			switch {
			case c.Ahead == nil, other.Ahead == nil:
				found.skip("Its clock, or that of %s, is unknown.", other.Context)
			case *c.Ahead-*other.Ahead > maxSkew:
				found.warn("Correct the clock of one of the two control planes.", "The clock of the API server is %s ahead of that of %s, "+
					"so a newer export may count as the oldest in conflicts.", (*c.Ahead - *other.Ahead).Round(time.Second), other.Context)
			}
		}
	}},
	{
		Name: "distinct", About: "contexts refer to different clusters", before: true, run: func(s *Set, c *Cluster, found *problems) {
			if c.UID == "" {
				found.skip("The UID of its namespace kube-system is unknown: %v.", c.Unidentified)
			}
			for _, other := range s.Clusters[:slices.Index(s.Clusters, c)] {
				if other.Unreachable == nil && same(other, c) {
					found.fail("Name each cluster once in --contexts, or point context "+c.Context+
						" to another cluster in your kubeconfig.", "Context %s refers to the same cluster.", other.Context)
				}
			}
		},
	},
	{Name: "crds", About: "the MCS API is served", run: func(_ *Set, c *Cluster, found *problems) {
		if c.MCSVersion == "" || c.State != nil && c.State.MCSVersion == "" {
			found.fail(c.ApplyCRDs(), "The CRDs of the MCS API are missing, or serve neither v1beta1 nor v1alpha1.")
		}
	}},
	{Name: "crds-complete", About: "the CRDs have all fields", before: true, run: func(_ *Set, c *Cluster, found *problems) {
		switch {
		case c.LostError != nil:
			found.skip("The fields of the CRDs are unknown: %v.", c.LostError)
		case len(c.Lost) > 0:
			found.warn(c.ApplyCRDs(), "The CRDs of the MCS API are outdated: they lose %s.", strings.Join(c.Lost, " and "))
		}
	}},
}

// clusterChecks are about networks, and about the state that controllers report.
var clusterChecks = []Check{
	ranges("pod-ranges", "pod ranges", false, func(c *Cluster) []netip.Prefix { return c.PodCIDRs },
		"so their pods cannot reach each other", "Name their networks (docs/operate/networks.md), or give one of the two clusters "+
			"another pod range; nodes keep their ranges, so this takes new nodes."),
	ranges("service-ranges", "Service ranges", false, func(c *Cluster) []netip.Prefix { return c.ServiceCIDRs },
		"which cannot reach these pods", "Change one of the two ranges; the Service range is in the ServiceCIDRs."),
	ranges("node-ranges", "nodes", true, func(c *Cluster) []netip.Prefix { return c.Nodes }, "which these pods cannot reach",
		"Give the nodes or the pods other addresses, or expose the exports by load balancers: docs/operate/networks.md."),
	{Name: "controller", About: "the controller answers", run: func(_ *Set, c *Cluster, found *problems) {
		fix := "Start clusterset-controller in namespace " + c.Namespace + ". If it runs, find the cause in its logs: `" +
			c.kubectl("-n %s logs -l app.kubernetes.io/component=controller --prefix --tail=200", c.Namespace) + "`."
		switch {
		case c.State == nil && errors.Is(c.Unidentified, cluster.ErrNeverRan):
			found.fail("Install it, or set its namespace with --system-namespace: `"+
				c.chart("install", "--create-namespace --set clusterId=<id> --set image.registry=<registry>")+"`. "+fix,
				"The controller has never run in namespace %s.", c.Namespace)
		case errors.Is(c.StateError, cluster.ErrForbidden):
			found.fail("Have an administrator bind the Role clusterset-viewer of namespace "+c.Namespace+" to you: it has the right that the "+
				"API server names.", "It is unknown what the controller reports: %v.", c.StateError)
		case c.State == nil:
			found.fail(fix, "The controller does not say what it knows: %v.", c.StateError)
		}
	}},
	{Name: "cluster-id", About: "the cluster id is unique", before: true, run: func(s *Set, c *Cluster, found *problems) {
		if c.ID == "" {
			found.skip("Its cluster id is unknown: %v.", c.Unidentified)
			return
		}
		for _, other := range s.others(c, found) {
			if other.ID == c.ID {
				found.fail(c.chart("upgrade", "--reset-then-reuse-values --set clusterId=<new id>"),
					"The cluster of context %s has the id %s, too.", other.Context, c.ID)
				return
			}
		}
	}},
	{
		Name: "joined", About: "each cluster has a credential of every other cluster", stated: true,
		run: func(s *Set, c *Cluster, found *problems) {
			for _, other := range s.others(c, found) {
				switch _, is := c.ranks()[other.ID]; {
				case other.ID == "":
					found.skip("The cluster id of %s is unknown.", other.Context)
				case !is:
					found.fail("kubectl clusterset join "+c.Context+" "+other.Context+c.system(),
						"There is no credential of %s, so nothing is imported from it.", other.ID)
				}
			}
		},
	},
	{
		Name: "member-ranges", About: "the annotation cidrs of each member includes the pod ranges of its nodes, or the nodes of another network",
		stated: true,
		run: func(s *Set, c *Cluster, found *problems) {
			for _, other := range s.others(c, found) {
				at := slices.IndexFunc(c.State.Members, func(m state.Member) bool { return m.Cluster == other.ID })
				if at < 0 || len(c.State.Members[at].CIDRs) == 0 {
					continue
				}
				fix, by := "kubectl clusterset join "+c.Context+" "+other.Context+c.system(), c.State.Members[at].Credential
				if !strings.HasPrefix(by, "Secret ") {
					fix = "Correct the annotation " + cluster.CIDRsAnnotation + " of " + by + "."
				}
				what, ranges := "in its pod range", other.PodCIDRs
				if otherNetworks(c, other) {
					what, ranges = "at its node", other.Nodes
				}
				if len(ranges) == 0 {
					found.skip("The ranges of %s are unknown: compare them with its annotation cidrs, which has %s.", other.ID,
						strings.Join(c.State.Members[at].CIDRs, ","))
				}
				for _, each := range ranges {
					if !setup.Covers(setup.AddPrefixes(nil, c.State.Members[at].CIDRs...), each) {
						found.fail(fix, "Endpoints of %s %s %s are refused: its annotation cidrs has %s.", other.ID, what, each,
							strings.Join(c.State.Members[at].CIDRs, ","))
						break
					}
				}
			}
		},
	},
	{
		Name: "ranks-agree", About: "clusters have the same rank in all clusters", stated: true,
		run: func(s *Set, c *Cluster, found *problems) {
			here := c.ranks()
			for _, id := range slices.Sorted(maps.Keys(here)) {
				first := s.Clusters[slices.IndexFunc(s.Clusters, func(each *Cluster) bool {
					_, known := each.ranks()[id]
					return known
				})]
				if rank := first.ranks()[id]; rank != here[id] && max(rank, here[id]) <= maxRank {
					found.warn("Set the annotation clusterset-dns.github.io/rank of "+id+" to the same value: in its own cluster "+
						"on namespace "+c.Namespace+", in all others on the Secret of the member.",
						"The rank of %s is %d in %s, but %d in %s, so they may import the same exports differently.", id, here[id], c.ID,
						rank, first.ID)
				}
			}
		},
	},
	{Name: "findings", About: "the controller reports no problem", stated: true, run: func(_ *Set, c *Cluster, found *problems) {
		found.Findings = append(found.Findings, c.State.Findings...)
	}},
}

// noAnswer is why the state of the controller is unknown.
const noAnswer = "The controller does not answer."

// ranks are the ranks in conflicts that a cluster gives to itself and to its members, by their ids; nil if unknown.
func (c *Cluster) ranks() map[string]int {
	if c.State == nil {
		return nil
	}
	ranks := map[string]int{c.ID: c.State.Rank}
	for i := range c.State.Members {
		ranks[c.State.Members[i].Cluster] = c.State.Members[i].Rank
	}
	return ranks
}

// ranges returns a check that the pod ranges of a cluster do not overlap ranges of other clusters, which would have an effect.
// elsewhere compares clusters in other networks; otherwise they are, or may be, in the same network.
func ranges(name, what string, elsewhere bool, of func(*Cluster) []netip.Prefix, effect, fix string) Check {
	among := map[bool]string{false: "its network", true: "another network"}[elsewhere]
	return Check{
		Name: name, About: "pod ranges do not overlap " + what + " of other clusters in " + among, before: !elsewhere,
		run: func(s *Set, c *Cluster, found *problems) {
			others := slices.DeleteFunc(s.others(c, found), func(other *Cluster) bool { return otherNetworks(c, other) != elsewhere })
			if len(others) > 0 && c.PodCIDRsError != nil {
				found.skip("Its pod ranges are unknown (%v): compare the ranges of the CNI with the %s of the other clusters.",
					c.PodCIDRsError, what)
			}
			for _, other := range others {
				theirs := of(other)
				if len(theirs) == 0 {
					found.skip("The %s of %s are unknown: compare them with %s.", what, other.Context, c.PodCIDRs)
				}
				for _, one := range c.PodCIDRs {
					if at := slices.IndexFunc(theirs, one.Overlaps); at >= 0 {
						found.fail(fix, "Its pod range %s (spec.podCIDRs of the nodes) overlaps %s, one of the %s of %s, %s.", one, theirs[at],
							what, other.Context, effect)
						break
					}
				}
			}
		},
	}
}

// others returns the clusters with which a cluster can be compared. Without any, the check is skipped.
func (s *Set) others(c *Cluster, found *problems) []*Cluster {
	others := slices.DeleteFunc(slices.Clone(s.Clusters), func(other *Cluster) bool {
		return other == c || other.Unreachable != nil || same(other, c)
	})
	if len(others) == 0 {
		found.skip("No other cluster that is reachable is selected: select all clusters of the set with --contexts.")
	}
	return others
}

// otherNetworks reports whether two clusters are in different networks.
func otherNetworks(a, b *Cluster) bool {
	return a.ID != "" && b.ID != "" && a.Network != b.Network
}

// same reports whether two contexts refer to one cluster.
func same(a, b *Cluster) bool { return a.UID != "" && a.UID == b.UID }
