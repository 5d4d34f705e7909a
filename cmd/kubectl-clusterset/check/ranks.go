// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strconv"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/explain"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// ranks compares the ranks of each cluster with those that the clusters before it have. A rank that is not valid is
// that of credential-usable, or that of the cluster itself.
var ranks = Check{
	Name: "ranks", About: "ranks are valid, and the same in all clusters",
	run: func(s *Set, c *Cluster) (found []problem) {
		if namespace := c.Namespaces[c.System]; namespace != nil {
			if _, err := member.ParseRank(namespace.Annotations); err != nil {
				found = append(found, wrong(c.rank(c.ID, "<integer from -1000 to 1000>"),
					"Namespace %s: %v. Exports of %s come last in conflicts.", c.System, err, c.ID))
			}
		}
		for _, id := range c.ranked() {
			here, known := c.rankOf(id)
			for _, first := range s.Clusters {
				if first == c || !known {
					break
				}
				if there, compared := first.rankOf(id); compared {
					if here != there {
						found = append(found, odd(c.rank(id, strconv.Itoa(there)),
							"The rank of %s is %d in %s, but %d in %s, so they may import the same exports differently.", id, here, c.ID,
							there, first.ID))
					}
					break
				}
			}
		}
		return found
	},
}

// ranked are the ids that can have a rank in the cluster.
func (c *Cluster) ranked() []string {
	ids := []string{c.ID}
	for i := range c.Members {
		ids = append(ids, c.Members[i].ID)
	}
	return ids
}

// rankOf returns the rank that a cluster has in conflicts, and whether it is known and valid.
func (c *Cluster) rankOf(id string) (rank int, known bool) {
	if !reached(c) {
		return 0, false
	}
	m := c.Member(id)
	switch {
	case id == c.ID:
		rank = c.Rank()
	case m == nil || m.Secret == nil:
		return 0, false
	default:
		rank = m.Rank
	}
	return rank, rank != member.LastRank
}

// rank is the command that gives a cluster a rank.
func (c *Cluster) rank(id, rank string) string {
	if id == c.ID {
		return c.kubectl("annotate namespace %s %s --overwrite", c.System, explain.Assign(member.RankAnnotation, rank))
	}
	return c.kubectl("-n %s annotate secret %s %s --overwrite", c.System, c.Member(id).Secret.Name,
		explain.Assign(member.RankAnnotation, rank))
}
