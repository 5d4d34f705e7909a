// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/manifest"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
)

var dnsChecks = []Check{
	{
		Name: "coredns", About: "CoreDNS is installed as by kubeadm, or the cluster's DNS serves the zone in another way",
		run: func(s *Set, c *Cluster) []problem {
			const fix = "Configure the cluster's DNS for %s by hand: forward the zone to the chart's CoreDNS (--set " +
				"coredns.enabled=true), or use a CoreDNS with the plugin multicluster. If it cannot be queried, set its address " +
				"with --dns."
			switch {
			case c.Deployment != nil:
			case !asked(c):
				return []problem{odd(fmt.Sprintf(fix, s.Zone),
					"Deployment %s/%s does not exist, and the cluster's DNS could not be queried.",
					coredns.Namespace, coredns.Name)}
			case !c.hasZone():
				return []problem{wrong(fmt.Sprintf(fix, s.Zone),
					"Deployment %s/%s does not exist, and the cluster's DNS returns %s for zone %s.",
					coredns.Namespace, coredns.Name, c.Apex.Text(), s.Zone)}
			}
			return nil
		},
	},
	{
		Name: "coredns-available", About: "the rollout of CoreDNS is complete", skip: noCoreDNS,
		run: func(_ *Set, c *Cluster) []problem {
			pending := pendingRollout(c.Deployment)
			if pending == "" {
				return nil
			}
			fix := c.kubectl("-n %s rollout status deployment %s", coredns.Namespace, coredns.Name) // which waits
			if slices.ContainsFunc(c.Deployment.Status.Conditions, func(condition appsv1.DeploymentCondition) bool {
				return condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse
			}) {
				fix = c.kubectl("-n %s rollout undo deployment %s", coredns.Namespace, coredns.Name)
				pending += ", and the rollout has timed out"
			}
			return []problem{wrong(fix, "The rollout of CoreDNS is not complete: %s.", pending)}
		},
	},
	{
		Name: "coredns-image", About: "CoreDNS has the plugin multicluster", skip: func(s *Set, c *Cluster) string {
			if why := noPlugin(s, c); why != "" || c.by(s) == coredns.ByMulticluster {
				return why
			}
			return "The Corefile does not serve " + s.Zone + "."
		},
		run: func(s *Set, c *Cluster) []problem {
			if image := c.image(); !ours(image) {
				return []problem{odd(s.enable(c),
					"CoreDNS runs %s, which is not known to have the plugin multicluster.",
					image)}
			}
			return nil
		},
	},
	{
		Name: "coredns-version", About: "all clusters run the same CoreDNS", skip: noCoreDNS,
		run: func(s *Set, c *Cluster) []problem {
			for _, other := range s.others(c) {
				if other.Deployment == nil || !ours(c.image()) || !ours(other.image()) ||
					!older(tag(c.image()), tag(other.image())) {
					continue
				}
				return []problem{odd(c.setImage(other.image()), "CoreDNS runs %s, but %s in %s.", c.image(), other.image(),
					other.Context)}
			}
			return nil
		},
	},
	{Name: "corefile", About: "the Corefile parses", skip: noCoreDNS, run: func(_ *Set, c *Cluster) []problem {
		if _, err := coredns.ParseCorefile(c.Corefile); err != nil {
			return []problem{wrong(c.kubectl("-n %s edit configmap %s", coredns.Namespace, coredns.Name),
				"ConfigMap %s/%s: %v.", coredns.Namespace, coredns.Name, err)}
		}
		return nil
	}},
	{
		Name: "corefile-multicluster", About: "the Corefile serves the zone", skip: noPlugin,
		run: func(s *Set, c *Cluster) []problem {
			corefile, err := coredns.ParseCorefile(c.Corefile)
			switch {
			case err != nil:
				return nil
			case !corefile.Serves(s.Zone):
				return []problem{wrong(s.enable(c), "The Corefile does not serve %s.", s.Zone)}
			case c.ID != "" && corefile.Set(s.Zone) != c.Set:
				return []problem{wrong(s.serveSet(c), "The Corefile serves %s for %s, not for %s.", s.Zone, setName(corefile.Set(s.Zone)),
					setName(c.Set))}
			}
			return nil
		},
	},
	{
		Name: "corefile-cluster", About: "the Corefile has the id of the cluster", skip: noCoreDNS,
		run: func(s *Set, c *Cluster) []problem {
			corefile := c.parsed()
			if corefile == nil || !corefile.Serves(s.Zone) || c.ID == "" {
				return c.forwardedID(s)
			}
			switch id := corefile.Option(s.Zone, "cluster"); {
			case len(id) == 1 && !strings.EqualFold(id[0], c.ID) && names.ValidateID(strings.ToLower(id[0])) == nil:
				return []problem{wrong(fmt.Sprintf(`%s | sed 's/^\( *cluster\) %s/\1 %s/' | %s`,
					c.kubectl("-n %s get configmap %s -o yaml", coredns.Namespace, coredns.Name), id[0], c.ID,
					c.kubectl("replace -f -")),
					"The Corefile has `cluster %s`, but this cluster is %s: DNS prefers endpoints of the wrong cluster.",
					id[0], c.ID)}
			case len(id) == 0 && c.wantsCluster() != "":
				return []problem{odd(fmt.Sprintf("Add `cluster %s` to the multicluster block of the Corefile: `%s`.",
					c.ID, c.kubectl("-n %s edit configmap %s", coredns.Namespace, coredns.Name)),
					"The Corefile has no `cluster %s`, so DNS does not prefer near endpoints, although %s.", c.ID, c.wantsCluster())}
			}
			return nil
		},
	},
	{Name: "coredns-rights", About: "CoreDNS has the permissions it needs", skip: func(s *Set, c *Cluster) string {
		if c.by(s) == coredns.ByKubernetes {
			return noCoreDNS(s, c) // it reads the same
		}
		return noPlugin(s, c)
	}, run: func(s *Set, c *Cluster) []problem {
		if len(c.CoreDNSLacks) == 0 {
			return nil
		}
		return []problem{wrong(c.grant(), "Service account %s/%s, which CoreDNS runs as, lacks permissions: %s.", coredns.Namespace,
			accountOf(c.Deployment), rightsText(c.CoreDNSLacks))}
	}},
	{Name: "dns-reachable", About: "the cluster's DNS can be queried", run: func(s *Set, c *Cluster) []problem {
		if c.DNSError != nil {
			return []problem{odd("kubectl clusterset check --contexts "+c.Context+" --dns "+c.Context+"=<address>"+
				s.flag()+c.system(), "The cluster's DNS could not be queried: %v.", c.DNSError)}
		}
		return nil
	}},
	{
		Name: "dns-zone", About: "the cluster's DNS serves the zone",
		skip: func(s *Set, c *Cluster) string { return cmp.Or(noCoreDNS(s, c), unasked(c)) },
		run: func(s *Set, c *Cluster) []problem {
			if c.hasZone() {
				return nil
			}
			fix := s.enable(c)
			switch by := c.by(s); {
			case by == coredns.ByForward:
				fix = fmt.Sprintf("Make the server to which the Corefile forwards %s serve the zone: `%s` prints its address.",
					s.Zone, c.kubectl("-n %s get configmap %s -o yaml", coredns.Namespace, coredns.Name))
			case by == coredns.ByKubernetes, by == coredns.ByMulticluster && ours(c.image()):
				fix = c.restart() // it runs with what was there before
			}
			return []problem{wrong(fix, "The cluster's DNS returns %s for zone %s.", c.Apex.Text(), s.Zone)}
		},
	},
	{
		Name: "dns-names", About: "the cluster's DNS resolves imports correctly",
		skip: func(_ *Set, c *Cluster) string {
			if why := unasked(c); why != "" || c.hasZone() {
				return why
			}
			return "The cluster's DNS does not serve the zone."
		}, run: func(_ *Set, c *Cluster) (found []problem) {
			for _, answer := range c.Lookups {
				if answer.Wrong {
					found = append(found, wrong(c.restart(), "The cluster's DNS returns %s for %s %s instead of %s.",
						answer.Text(), answer.Name, answer.Type, answer.ExpectedText()))
				}
			}
			return found
		},
	},
}

// serveSet is the instruction to make the plugin serve the zone for the cluster set.
func (s *Set) serveSet(c *Cluster) string {
	change := "set the option `clusterset " + c.Set + "` of multicluster in"
	switch {
	case c.Set == "":
		change = "remove the option clusterset of multicluster from"
	case c.by(s) == "":
		change = fmt.Sprintf("add a server block for %s with the option `clusterset %s` of multicluster to",
			strings.TrimSuffix(s.Zone, "."), c.Set)
	}
	return fmt.Sprintf("Select the zone of %s with --zone, or %s the Corefile: `%s`.", setName(c.Set), change,
		c.kubectl("-n %s edit configmap %s", coredns.Namespace, coredns.Name))
}

func setName(set string) string {
	if set == "" {
		return "the default cluster set"
	}
	return "cluster set " + set
}

func noCoreDNS(_ *Set, c *Cluster) string {
	if c.Deployment == nil {
		return fmt.Sprintf("Deployment %s/%s does not exist.", coredns.Namespace, coredns.Name)
	}
	return ""
}

// noPlugin returns noCoreDNS, or why CoreDNS does not need the plugin
// multicluster: the zone is served in another way.
func noPlugin(s *Set, c *Cluster) string {
	if why := noCoreDNS(s, c); why != "" {
		return why
	}
	switch c.by(s) {
	case coredns.ByMulticluster:
		return ""
	case coredns.ByKubernetes:
		return "The Corefile serves " + s.Zone + " with the option multicluster of the stock plugin kubernetes. Its " +
			"answers have the TTL of that plugin. They differ for ports and host names of other implementations, see " +
			"docs/interop.md."
	case coredns.ByForward:
		return "The Corefile forwards " + s.Zone + " to another server."
	}
	if unreadable := c.Corefile != "" && c.parsed() == nil; asked(c) && c.hasZone() && !unreadable {
		return "The cluster's DNS serves " + s.Zone + " in a way that the Corefile does not show."
	}
	return ""
}

func asked(c *Cluster) bool { return c.DNSError == nil }

func unasked(c *Cluster) string {
	if !asked(c) {
		return "The cluster's DNS could not be queried."
	}
	return ""
}

// by is the plugin with which the Corefile serves the zone of the set, empty if
// unknown.
func (c *Cluster) by(s *Set) string {
	corefile := c.parsed()
	if corefile == nil {
		return ""
	}
	return corefile.By(s.Zone)
}

// grant has the commands that let CoreDNS read ServiceImports.
func (c *Cluster) grant() string {
	return fmt.Sprintf("Grant it the role: `%s && %s`.", c.apply(manifest.CoreDNS),
		c.kubectl("create clusterrolebinding clusterset-stock-coredns --clusterrole=clusterset-coredns "+
			"--serviceaccount=%s:%s", coredns.Namespace, accountOf(c.Deployment)))
}

// image is that of CoreDNS.
func (c *Cluster) image() string {
	if container := containerOf(c.Deployment); container != nil {
		return container.Image
	}
	return ""
}

// ours reports whether an image is known to have the plugin: its name contains that of the project.
func ours(image string) bool { return strings.Contains(image, "clusterset") }

// setImage is the command that sets the image of CoreDNS.
func (c *Cluster) setImage(image string) string {
	name := coredns.Name
	if container := containerOf(c.Deployment); container != nil {
		name = container.Name
	}
	return c.kubectl("-n %s set image deployment/%s %s=%s", coredns.Namespace, coredns.Name, name, image)
}

func tag(image string) string {
	return image[strings.LastIndex(image, ":")+1:]
}

// older reports whether the first of two tags is older: by version, or else in
// lexical order.
func older(one, two string) bool {
	for _, parse := range []func(string) (*version.Version, error){version.ParseSemantic, version.ParseGeneric} {
		a, err := parse(one)
		b, otherErr := parse(two)
		if err == nil && otherErr == nil {
			return a.LessThan(b)
		}
	}
	return one < two
}

// parsed is the Corefile, nil if it is missing or invalid.
func (c *Cluster) parsed() *coredns.Corefile {
	corefile, err := coredns.ParseCorefile(c.Corefile)
	if err != nil || c.Corefile == "" {
		return nil
	}
	return corefile
}

// forwardedID is what is wrong with the id in the Corefile of the chart's CoreDNS, to which the cluster's DNS forwards.
func (c *Cluster) forwardedID(s *Set) []problem {
	corefile, err := coredns.ParseCorefile(c.ChartCorefile)
	if err != nil || c.ID == "" || c.by(s) != coredns.ByForward || !corefile.Serves(s.Zone) || c.wantsCluster() == "" {
		return nil
	}
	if id := corefile.Option(s.Zone, "cluster"); len(id) == 1 && strings.EqualFold(id[0], c.ID) {
		return nil
	}
	return []problem{odd(c.chart("upgrade", "--reset-then-reuse-values --set clusterId="+c.ID),
		"The Corefile of the chart's CoreDNS has no `cluster %s`, so DNS does not prefer near endpoints, although %s.",
		c.ID, c.wantsCluster())}
}

// wantsCluster is why DNS has to know the local cluster, empty if it does not.
func (c *Cluster) wantsCluster() string {
	for i := range c.Imports {
		each := &c.Imports[i]
		if !names.IsManaged(each) || each.Spec.Type != v1beta1.Headless {
			continue
		}
		distribution := ptr.Deref(each.Spec.TrafficDistribution, "")
		switch prefer := each.Annotations[names.Prefer]; {
		case prefer == "cluster" || prefer == "local":
			return each.Namespace + "/" + each.Name + " prefers the local cluster"
		case distribution != "":
			return each.Namespace + "/" + each.Name + " has trafficDistribution " + distribution
		}
	}
	return ""
}

func (c *Cluster) hasZone() bool { return c.Apex.Rcode == "NOERROR" && len(c.Apex.Records) > 0 }

// restart is the command that restarts CoreDNS.
func (c *Cluster) restart() string {
	if c.Deployment == nil {
		return "Restart the cluster's DNS."
	}
	return c.kubectl("-n %s rollout restart deployment %s", coredns.Namespace, coredns.Name)
}

// enable says how the cluster's CoreDNS comes to serve the zone: by a command, or as its owner documents it.
func (s *Set) enable(c *Cluster) string {
	command := "kubectl clusterset coredns enable --contexts " + c.Context + s.flag()
	if c.Deployment == nil {
		return command
	}
	if c.Set != "" && c.by(s) == "" {
		return s.serveSet(c) // coredns enable serves the default set only
	}
	owner := coredns.OwnerOf(c.Deployment)
	switch {
	case c.by(s) == coredns.ByMulticluster:
		return c.setImage("<image of CoreDNS with multicluster>")
	case owner != nil:
		return fmt.Sprintf("%s manages CoreDNS: %s.", owner.Name, owner.Instead)
	}
	return command
}
