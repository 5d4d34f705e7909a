// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
)

var dnsChecks = []Check{
	{Name: "coredns", About: "CoreDNS is where kubeadm installs it", run: func(s *Set, c *Cluster) []problem {
		if c.Deployment == nil {
			return []problem{odd("Put the line `multicluster "+s.Zone+"` into the Corefile of the cluster's DNS by hand.",
				"There is no Deployment %s/%s: the Corefile and the image of its DNS were not looked at.", coredns.Namespace, coredns.Name)}
		}
		return nil
	}},
	{Name: "coredns-available", About: "all pods of CoreDNS are available and new", applies: hasCoreDNS, run: func(_ *Set, c *Cluster) []problem {
		if pending := coredns.Pending(c.Deployment); pending != "" {
			return []problem{wrong(c.kubectl("-n %s rollout status deployment %s", coredns.Namespace, coredns.Name), "CoreDNS is not as it is to be: %s.", pending)}
		}
		return nil
	}},
	{Name: "coredns-image", About: "CoreDNS has the plugin multicluster", applies: hasCoreDNS, run: func(_ *Set, c *Cluster) []problem {
		if image := c.image(); !ours(c, image) {
			return []problem{odd(c.enable(), "CoreDNS runs %s, which is not known to have the plugin multicluster.", image)}
		}
		return nil
	}},
	{Name: "coredns-version", About: "all clusters run the same CoreDNS", applies: hasCoreDNS, run: func(s *Set, c *Cluster) []problem {
		for _, other := range s.others(c) {
			if other.Deployment == nil || !ours(c, c.image()) || !ours(other, other.image()) || tag(c.image()) >= tag(other.image()) {
				continue
			}
			return []problem{odd("kubectl clusterset coredns enable --contexts "+c.Context+" --image "+other.image(), "CoreDNS runs %s, and %s in %s.", c.image(), other.image(), other.Context)}
		}
		return nil
	}},
	{Name: "corefile", About: "the Corefile parses", applies: hasCoreDNS, run: func(_ *Set, c *Cluster) []problem {
		if _, err := coredns.ParseCorefile(c.Corefile); err != nil {
			return []problem{wrong(c.kubectl("-n %s edit configmap %s", coredns.Namespace, coredns.Name), "%v.", err)}
		}
		return nil
	}},
	{Name: "corefile-multicluster", About: "the Corefile has the plugin for the zone", applies: hasCoreDNS, run: func(s *Set, c *Cluster) []problem {
		if corefile, err := coredns.ParseCorefile(c.Corefile); err == nil && !corefile.Serves(s.Zone) {
			return []problem{wrong(c.enable(), "The Corefile has no line `multicluster %s` in the server block that answers for %s.", s.Zone, s.Zone)}
		}
		return nil
	}},
	{Name: "coredns-rights", About: "CoreDNS may read what the plugin serves", applies: hasCoreDNS, run: func(_ *Set, c *Cluster) []problem {
		if len(c.CoreDNSLacks) == 0 {
			return nil
		}
		return []problem{wrong(c.enable(), "Service account %s/%s, which CoreDNS runs as, may not %s.", coredns.Namespace, coredns.AccountOf(c.Deployment), rightsText(c.CoreDNSLacks))}
	}},
	{Name: "dns-asked", About: "the cluster's DNS answers", run: func(_ *Set, c *Cluster) []problem {
		if c.DNSError != nil {
			return []problem{odd("Name the address of the cluster's DNS with --dns.", "Its DNS could not be asked: %v.", c.DNSError)}
		}
		return nil
	}},
	{Name: "dns-zone", About: "the cluster's DNS has the zone", applies: asked, run: func(s *Set, c *Cluster) []problem {
		if c.Apex.Rcode != "NOERROR" || len(c.Apex.Records) == 0 {
			return []problem{wrong(c.enable(), "Its DNS answers %s for the zone %s.", c.Apex.Text(), s.Zone)}
		}
		return nil
	}},
	{Name: "dns-names", About: "the cluster's DNS answers for imports as it should", applies: asked, run: func(_ *Set, c *Cluster) (found []problem) {
		for _, lookup := range c.Lookups {
			for _, answer := range lookup.Answers {
				if answer.Wrong {
					found = append(found, wrong("kubectl clusterset explain "+lookup.Service+" --contexts "+c.Context,
						"Its DNS answers %s for %s %s, and should answer %s.", answer.Text(), answer.Name, answer.Type, strings.Join(answer.Expected, " ")))
				}
			}
		}
		return found
	}},
}

func hasCoreDNS(c *Cluster) bool { return reached(c) && c.Deployment != nil }

func asked(c *Cluster) bool { return reached(c) && c.DNSError == nil }

// image is that of CoreDNS.
func (c *Cluster) image() string {
	if container := coredns.Container(c.Deployment); container != nil {
		return container.Image
	}
	return ""
}

// ours tells whether an image is known to have the plugin: it was put there by
// `coredns enable`, or is called after the project.
func ours(c *Cluster, image string) bool {
	return image != "" && image == c.Deployment.Annotations[coredns.AnnotationImage] || strings.Contains(image, "clusterset")
}

func tag(image string) string {
	return image[strings.LastIndex(image, ":")+1:]
}

// enable is the command that puts the plugin into the cluster's CoreDNS.
func (c *Cluster) enable() string {
	image := "<image of CoreDNS with multicluster>"
	switch {
	case c.Deployment == nil:
	case ours(c, c.image()):
		image = c.image()
	case c.Deployment.Annotations[coredns.AnnotationImage] != "":
		image = c.Deployment.Annotations[coredns.AnnotationImage]
	}
	return fmt.Sprintf("kubectl clusterset coredns enable --contexts %s --image %s", c.Context, image)
}
