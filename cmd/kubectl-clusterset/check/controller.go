// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// controllerChecks are those whose findings are the controller's, and those that compare what controllers say.
var controllerChecks = []Check{
	{Name: "controller-answers", About: "the controller answers questions", run: func(_ *Set, c *Cluster) []problem {
		if c.State != nil {
			return nil
		}
		return []problem{wrong(c.cause(), "The controller does not say what it knows: %v.", c.StateError)}
	}},
	{
		Name: "joined", About: "each cluster has a credential of every other cluster", skip: silent,
		run: func(s *Set, c *Cluster) (found []problem) {
			for _, other := range s.Clusters {
				if other != c && reached(other) && other.ID != "" && other.ID != c.ID && c.member(other.ID) == nil {
					found = append(found, wrong("kubectl clusterset join "+c.Context+" "+other.Context+c.system(),
						"There is no credential of %s, so nothing is imported from it.", other.ID))
				}
			}
			return found
		},
	},
	found("credential-usable", "credentials are usable"),
	found("credential-lasts", "no credential expires soon"),
	found("credential-single", "each member has one credential"),
	found("member-reachable", "the controller can read its members"),
	found("member-identity", "credentials refer to the clusters that they name"),
	found("member-limits", "members are within their limits"),
	found("member-quarantined", "no member is quarantined"),
	found("member-fresh", "heartbeats of members arrive"),
	found("pods-reached", "connections to the pods of members succeed"),
	found("drained", "no member is drained"),
	found("drained-itself", "the cluster itself is not drained"),
	{
		Name: "member-ranges", About: "members are confined to ranges that include those of their pods", skip: silent,
		run: func(s *Set, c *Cluster) (found []problem) {
			for _, other := range s.others(c) {
				m := c.member(other.ID)
				if m == nil || len(m.CIDRs) == 0 {
					continue
				}
				var lacking []string
				for _, pods := range other.podCIDRs() {
					if !slices.ContainsFunc(prefixes(m.CIDRs), func(p netip.Prefix) bool {
						return p.Bits() <= pods.Bits() && p.Contains(pods.Addr())
					}) {
						lacking = append(lacking, pods.String())
					}
				}
				if len(lacking) > 0 {
					found = append(found, wrong(c.annotate(m, "clusterset-dns.github.io/cidrs",
						strings.Join(slices.Concat(m.CIDRs, lacking), ",")),
						"%s confines %s to addresses in %s, but it also has pods in %s, whose endpoints are refused.",
						m.Credential, m.Cluster, strings.Join(m.CIDRs, ","), strings.Join(lacking, ",")))
				}
			}
			return found
		},
	},
	{
		Name: "ranks", About: "ranks are valid, and the same in all clusters", skip: silent,
		run: func(s *Set, c *Cluster) []problem {
			all := findings(c, "ranks")
			if len(all) > 0 {
				return all
			}
			for _, first := range s.Clusters {
				if first == c {
					break
				}
				for i := range c.State.Members {
					m := &c.State.Members[i]
					there, known := first.rankOf(m.Cluster)
					if known && there != m.Rank && max(there, m.Rank) <= 1000 {
						all = append(all, odd(c.annotate(m, "clusterset-dns.github.io/rank", strconv.Itoa(there)),
							"The rank of %s is %d in %s, but %d in %s, so they may import the same exports differently.", m.Cluster,
							m.Rank, c.ID, there, first.ID))
					}
				}
				if there, known := first.rankOf(c.ID); known && there != c.State.Rank && max(there, c.State.Rank) <= 1000 {
					all = append(all, odd(c.kubectl("annotate namespace %s clusterset-dns.github.io/rank=%d --overwrite", c.System, there),
						"The rank of %s is %d in %s, but %d in %s, so they may import the same exports differently.", c.ID,
						c.State.Rank, c.ID, there, first.ID))
				}
			}
			return all
		},
	},
}

// serviceChecks have the findings about exports and imports. Causes come before their effects.
var serviceChecks = []Check{
	found("exports-valid", "all ServiceExports are valid"),
	found("exports-agree", "exports of different clusters do not conflict"),
	found("imports-ready", "all imports are ready"),
	found("imports-foreign", "no foreign ServiceImport blocks an import"),
	found("preferences", "preferences of services take effect"),
	found("namespaces", "the namespace of each exported service exists and is of the cluster set"),
	found("endpoints-refused", "everything that members publish is accepted"),
}

// found is a check whose problems are the findings of the controller with its name.
func found(name, about string) Check {
	return Check{Name: name, About: about, skip: silent, run: func(_ *Set, c *Cluster) []problem { return findings(c, name) }}
}

func findings(c *Cluster, name string) (all []problem) {
	for _, each := range c.State.Findings {
		if each.Name == name {
			all = append(all, problem{warning: each.Severity == state.Warning, what: each.What, fix: each.Fix})
		}
	}
	return all
}

// silent is why the controller's findings are unknown.
func silent(_ *Set, c *Cluster) string {
	if c.State == nil {
		return "The controller does not answer."
	}
	return ""
}

// member is the member of a cluster with an id, nil if there is none.
func (c *Cluster) member(id string) *state.Member {
	for i := range c.State.Members {
		if c.State.Members[i].Cluster == id {
			return &c.State.Members[i]
		}
	}
	return nil
}

// rankOf returns the rank that a cluster has in conflicts, and whether it is known.
func (c *Cluster) rankOf(id string) (rank int, known bool) {
	switch {
	case c.State == nil:
		return 0, false
	case id == c.ID:
		return c.State.Rank, true
	case c.member(id) == nil:
		return 0, false
	}
	return c.member(id).Rank, true
}

// annotate is the command that annotates the Secret of a member.
func (c *Cluster) annotate(m *state.Member, key, value string) string {
	_, name, _ := strings.Cut(m.Credential, "/")
	return c.kubectl("-n %s annotate secret %s %s --overwrite", c.System, name, fmt.Sprintf("'%s=%s'", key, value))
}
