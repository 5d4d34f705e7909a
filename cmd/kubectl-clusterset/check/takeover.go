// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// maxNames bounds the names and the members that a note lists.
const maxNames = 5

// takeOver reports which members could decide names that the cluster exports: their rank is not higher, and they are
// accepted. A member claims the creation times that decide among equal ranks. It finds no problems.
var takeOver = Check{
	Name: "take-over", About: "which members could take over names that the cluster exports (-o wide)",
	run: func(*Set, *Cluster) []problem { return nil },
	skip: func(_ *Set, c *Cluster) string {
		if c.SecretsUnseen != nil {
			return "The Secrets of the members cannot be read."
		}
		return ""
	},
	note: func(_ *Set, c *Cluster) string {
		var names []types.NamespacedName
		for i := range c.Exports {
			names = append(names, types.NamespacedName{Namespace: c.Exports[i].Namespace, Name: c.Exports[i].Name})
		}
		var members []string
		for i := range c.Members {
			m := &c.Members[i]
			if taken := takenBy(c.Facts, m, names); len(taken) > 0 {
				members = append(members, m.ID+": "+listed(taken))
			}
		}
		if len(members) == 0 {
			return ""
		}
		more := ""
		if len(members) > maxNames {
			more = fmt.Sprintf("; and %d more members", len(members)-maxNames)
		}
		return "These members could take over names: " + strings.Join(members[:min(len(members), maxNames)], "; ") + more +
			". Annotations " + member.RankAnnotation + " and " + accept.Annotation + " limit them."
	},
}

// takenBy returns the names that a member could take over, sorted.
func takenBy(f *facts.Facts, m *facts.Member, names []types.NamespacedName) (taken []string) {
	if m.Secret == nil && m.Lease == nil || m.Rank > f.Rank() {
		return nil
	}
	for _, name := range names {
		if f.Takes(name.Namespace) && f.Refuses(m, name) == "" {
			taken = append(taken, name.String())
		}
	}
	slices.Sort(taken)
	return taken
}

func listed(names []string) string {
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}
