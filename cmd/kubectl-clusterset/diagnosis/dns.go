// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/setup"
)

var dnsChecks = []Check{
	{
		Name: "coredns-available", About: "the rollout of CoreDNS is complete", before: true,
		run: func(_ *Set, c *Cluster, found *problems) {
			if c.CoreDNS == nil {
				found.skip(noCoreDNS, c.CorefileError)
				return
			}
			is, wanted := c.CoreDNS.Status, ptr.Deref(c.CoreDNS.Spec.Replicas, 1)
			if is.ObservedGeneration >= c.CoreDNS.Generation && is.Replicas == wanted && is.UpdatedReplicas == wanted &&
				is.AvailableReplicas == wanted {
				return
			}
			found.fail("Wait for the rollout, or revert it: `"+
				c.kubectl("-n %s rollout undo deployment %s", setup.CoreDNSNamespace, setup.CoreDNSName)+"`.",
				"The rollout of CoreDNS is not complete: of %d pods, %d are updated and %d are available.", is.Replicas,
				is.UpdatedReplicas, is.AvailableReplicas)
		},
	},
	{
		Name: "corefile", About: "the Corefile parses", before: true,
		run: func(_ *Set, c *Cluster, found *problems) {
			if errors.Is(c.CorefileError, setup.ErrCorefile) {
				found.fail(c.edit(setup.CoreDNSName), "ConfigMap %s/%s: %v.", setup.CoreDNSNamespace, setup.CoreDNSName, c.CorefileError)
			} else if c.CorefileError != nil {
				found.skip(noCoreDNS, c.CorefileError)
			}
		},
	},
	{
		Name: "corefile-cluster", About: "the Corefile that serves the zone has no id of another cluster",
		run: func(s *Set, c *Cluster, found *problems) {
			by, id := c.Corefile.By(s.Zone)
			switch {
			case c.ID == "":
				found.skip("Its cluster id is unknown: %v.", c.Unidentified)
			case by != setup.ByMulticluster || strings.ContainsAny(strings.Join(id, ""), "{%"):
				found.skip("No Corefile that could be read serves the zone with the plugin multicluster and an id of the cluster.")
			case len(id) > 0 && !strings.EqualFold(id[0], c.ID): // without an id, DNS prefers no endpoints
				found.fail(fmt.Sprintf("Set `cluster %s` in the multicluster block of the Corefile: `%s`.", c.ID, c.edit(setup.CoreDNSName)),
					"The Corefile has `cluster %s`, but this cluster is %s: DNS prefers endpoints of the wrong cluster.", id[0], c.ID)
			}
		},
	},
	{
		Name: "node-local-dns", About: "the Corefile of NodeLocal DNSCache, if it exists, passes the zone on to the cluster's DNS",
		run: func(s *Set, c *Cluster, found *problems) {
			if c.NodeCachesError != nil {
				found.skip("The Corefile of NodeLocal DNSCache could not be read: %v.", c.NodeCachesError)
			}
			for _, name := range c.NodeCaches {
				found.fail("Add the server block of docs/operate/install.md#nodelocal-dnscache: `"+c.edit(name)+"`.",
					"Pods cannot resolve names in %s: NodeLocal DNSCache answers their queries on each node, and its Corefile in "+
						"ConfigMap %s/%s has no server block for the zone.", s.Zone, setup.CoreDNSNamespace, name)
			}
		},
	},
	{Name: "dns-reachable", About: "the cluster's DNS can be queried", run: func(s *Set, c *Cluster, found *problems) {
		if c.DNSError != nil {
			found.warn("kubectl clusterset check --contexts "+c.Context+" --dns "+c.Context+"=<address>"+s.flag()+c.system(),
				"The cluster's DNS could not be queried: %v.", c.DNSError)
		}
	}},
	{Name: "dns-zone", About: "the cluster's DNS serves the zone", run: func(s *Set, c *Cluster, found *problems) {
		switch {
		case c.hasZone():
			return
		case c.DNSError != nil:
			found.skip(unasked)
			return
		}
		fix := fmt.Sprintf("Have the cluster's DNS forward %s to the CoreDNS of the chart, see docs/operate/install.md#platforms.", s.Zone)
		switch by, _ := c.Corefile.By(s.Zone); {
		case by == "" && c.CoreDNS != nil:
			fix = "kubectl clusterset coredns enable --contexts " + c.Context + s.flag()
		case by == setup.ByForward:
			fix = fmt.Sprintf("Make the server to which the Corefile forwards %s serve the zone: `%s` prints its address.", s.Zone,
				c.kubectl("-n %s get configmap %s -o yaml", setup.CoreDNSNamespace, setup.CoreDNSName))
		case by != "":
			fix = fmt.Sprintf("Find the cause in the logs of CoreDNS, such as missing permissions or an image that lacks the plugin "+
				"%s: `%s`. If its pods have not read the Corefile, restart them: `%s`.", by,
				c.kubectl("-n %s logs deployment/%s", setup.CoreDNSNamespace, setup.CoreDNSName), c.restart())
		}
		found.fail(fix, "The cluster's DNS returns %s for zone %s.", c.Apex.Text(), s.Zone)
	}},
	{
		Name: "dns-names", About: "the cluster's DNS resolves imports correctly",
		run: func(_ *Set, c *Cluster, found *problems) {
			switch {
			case c.DNSError != nil:
				found.skip(unasked)
			case len(c.Lookups) == 0:
				found.skip("No import with an IP is known, or the cluster's DNS does not serve the zone.")
			}
			for _, answer := range c.Lookups {
				if answer.Wrong {
					found.fail("Restart the server of the zone, for example `"+c.restart()+"`.",
						"The cluster's DNS returns %s for %s %s instead of %s.", answer.Text(), answer.Name, answer.Type, answer.expectedText())
				}
			}
		},
	},
}

// Reasons to skip a check.
const (
	noCoreDNS = "CoreDNS as kubeadm installs it could not be read: %v."
	unasked   = "The cluster's DNS could not be queried."
)

func (c *Cluster) hasZone() bool { return c.Apex.Rcode == "NOERROR" && len(c.Apex.Records) > 0 }

// edit is the command that opens the Corefile in a ConfigMap.
func (c *Cluster) edit(configMap string) string {
	return c.kubectl("-n %s edit configmap %s", setup.CoreDNSNamespace, configMap)
}

// restart is the command that restarts CoreDNS.
func (c *Cluster) restart() string {
	return c.kubectl("-n %s rollout restart deployment %s", setup.CoreDNSNamespace, setup.CoreDNSName)
}
