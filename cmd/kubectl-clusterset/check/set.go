// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/properties"
)

// sameSet is the instruction to make a member one of the cluster set. It keeps what else the clusters list.
func (s *Set) sameSet(c *Cluster, m *facts.Member) string {
	// The credential may refer to another namespace than that of --system-namespace.
	heartbeat := cmp.Or(m.Heartbeat, s.heartbeat(m))
	if heartbeat != nil && m.Secret != nil {
		if of := export.Set(member.DescriptionOf(heartbeat).ClusterSet); of != c.Set {
			return fmt.Sprintf("The controller that Secret %s refers to is of %s. Join that of %s: `%s`.", m.Secret.Name, of,
				c.Set, s.join(c, m.ID))
		}
	}
	patch := func(context string, of *coordinationv1.Lease, name string) string {
		list := []string{"<current list>"}
		if of != nil {
			known, _ := properties.Parse(member.DescriptionOf(of).Properties) // the controller writes what is valid
			if sets := properties.Sets(known); len(sets) > 0 {
				list = sets
			}
		}
		return fmt.Sprintf("`kubectl --context %s patch clusterproperty %s --type merge -p '{\"spec\":{\"value\":\"%s\"}}'`",
			context, properties.ClusterSet, strings.Join(append(slices.Clone(list), name), ","))
	}
	if c.Set != "" {
		return "Add " + string(c.Set) + " to the property of " + m.ID + ": " + patch(s.contextOf(m.ID), heartbeat,
			string(c.Set)) + "."
	}
	return "Add a set of one list to the other: " + patch(c.Context, c.Heartbeat, "<cluster set>") + ", or " +
		patch(s.contextOf(m.ID), heartbeat, "<cluster set>") + "."
}

// serveSet is the instruction to make the plugin serve the zone for the cluster set.
func (s *Set) serveSet(c *Cluster) string {
	change := fmt.Sprintf("set the option `clusterset %s` of multicluster in", string(c.Set))
	switch {
	case c.Set == "":
		change = "remove the option clusterset of multicluster from"
	case c.by(s) == "":
		change = fmt.Sprintf("add a server block for %s with the option `clusterset %s` of multicluster to",
			strings.TrimSuffix(s.Zone, "."), string(c.Set))
	}
	return fmt.Sprintf("Select the zone of %s with --zone, or %s the Corefile: `%s`.", c.Set, change,
		c.kubectl("-n %s edit configmap %s", coredns.Namespace, coredns.Name))
}

// moveNamespace is the instruction to make a Namespace one of the cluster set.
func (c *Cluster) moveNamespace(namespace string) string {
	label := export.LabelSet + "-"
	if c.Set != "" {
		label = export.LabelSet + "=" + string(c.Set) + " --overwrite"
	}
	return fmt.Sprintf("If it is to be of %s: `%s`.", c.Set, c.kubectl("label namespace %s %s", namespace, label))
}
