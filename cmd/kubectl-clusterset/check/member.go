// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// expiresSoon is how long before its end a credential should be replaced.
const expiresSoon = 14 * 24 * time.Hour

var memberChecks = []Check{
	{Name: "joined", About: "each cluster has the credential of each other", run: func(s *Set, c *Cluster) (found []problem) {
		for _, other := range s.Clusters {
			if other == c || !reached(other) || other.ID == "" || other.ID == c.ID || c.SecretsUnseen != nil {
				continue
			}
			if m := c.Member(other.ID); m == nil || m.Secret == nil {
				found = append(found, wrong(s.join(c, other.ID), "It has no credential of %s, so that it imports nothing of it.", other.ID))
			}
		}
		return found
	}},
	ofMembers("credential-usable", "the credentials can be used", func(s *Set, c *Cluster, m *facts.Member) []problem {
		if m.Secret == nil || m.Refused == nil {
			return nil
		}
		return []problem{wrong(s.join(c, m.ID), "Secret %s is refused: %v.", m.Secret.Name, m.Refused)}
	}),
	ofMembers("credential-lasts", "no credential ends soon", func(s *Set, c *Cluster, m *facts.Member) []problem {
		switch left := m.Expires.Sub(c.Now); {
		case m.Expires.IsZero():
			return nil
		case left <= 0:
			return []problem{wrong(s.join(c, m.ID), "The credential of %s ended %s ago: nothing new is learned of it.", m.ID, (-left).Round(time.Minute))}
		case left < expiresSoon:
			return []problem{odd(s.join(c, m.ID), "The credential of %s ends in %s.", m.ID, left.Round(time.Minute))}
		}
		return nil
	}),
	ofMembers("credential-single", "each member has one credential", func(_ *Set, c *Cluster, m *facts.Member) (found []problem) {
		for _, name := range m.Surplus {
			found = append(found, odd(c.kubectl("-n %s delete secret %s", c.System, name), "Secret %s is a second credential of %s and is not used; %s is.", name, m.ID, m.Secret.Name))
		}
		return found
	}),
	ofMembers("member-reachable", "the controller reads its members", func(s *Set, c *Cluster, m *facts.Member) []problem {
		if !told(m, controller.EventMemberUnreachable, controller.EventMemberRefused) {
			return nil
		}
		return []problem{wrong(s.join(c, m.ID), "The controller cannot read %s: %s.", m.ID, strings.TrimSuffix(m.Event.Message, "."))}
	}),
	ofMembers("member-identity", "members are who their credentials say", func(_ *Set, c *Cluster, m *facts.Member) []problem {
		if m.Heartbeat != nil && m.Secret != nil {
			if is := ptr.Deref(m.Heartbeat.Spec.HolderIdentity, ""); is != "" && is != m.ID && member.ValidateID(is) == nil {
				return []problem{wrong(c.kubectl("-n %s label secret %s %s=%s --overwrite", c.System, m.Secret.Name, member.ClusterLabel, is),
					"The member that Secret %s calls %s calls itself %s.", m.Secret.Name, m.ID, is)}
			}
		}
		if told(m, controller.EventMemberMistaken) {
			return []problem{wrong("Correct the kubeconfig in the Secret, or its label.", "%s", m.Event.Message)}
		}
		return nil
	}),
	ofMembers("member-held", "what members say is believed", func(_ *Set, c *Cluster, m *facts.Member) []problem {
		if !told(m, controller.EventMemberHeld) || m.State() == liveness.Fresh {
			return nil
		}
		token := m.Event.Message[strings.LastIndex(m.Event.Message, " ")+1:]
		return []problem{wrong(c.kubectl("-n %s annotate secret %s %s=%s --overwrite", c.System, m.Secret.Name, controller.AnnotationConfirm, token), "%s.", m.Event.Message)}
	}),
	ofMembers("member-fresh", "members are heard", func(s *Set, c *Cluster, m *facts.Member) []problem {
		switch {
		case m.Secret == nil:
			return nil
		case m.Lease == nil:
			return []problem{wrong(c.kubectl("-n %s logs deployment/clusterset-controller", c.System), "Its controller has not taken up the credential of %s.", m.ID)}
		case m.State() != liveness.Fresh:
			return []problem{wrong("kubectl clusterset check --contexts "+s.contextOf(m.ID), "%s is %s: it was last heard %s ago.", m.ID, m.State(), c.Now.Sub(m.Heard()).Round(time.Second))}
		}
		return nil
	}),
	ofMembers("drained", "no member is drained", func(_ *Set, c *Cluster, m *facts.Member) []problem {
		if !m.Drained() {
			return nil
		}
		return []problem{odd("kubectl clusterset undrain "+m.ID+" --contexts "+c.Context+c.system(), "%s is drained: its endpoints are used only where no other cluster has a ready one.", m.ID)}
	}),
	{Name: "drained-itself", About: "the cluster does not drain itself", run: func(_ *Set, c *Cluster) []problem {
		if !c.Drained() {
			return nil
		}
		return []problem{odd("kubectl clusterset undrain "+c.ID+" --contexts "+c.Context+c.system(), "It is drained: its own endpoints are used only where no other cluster has a ready one.")}
	}},
}

// ofMembers is a check of each member of a cluster.
func ofMembers(name, about string, run func(*Set, *Cluster, *facts.Member) []problem) Check {
	return Check{Name: name, About: about, run: func(s *Set, c *Cluster) (found []problem) {
		for i := range c.Members {
			found = append(found, run(s, c, &c.Members[i])...)
		}
		return found
	}}
}

// told tells whether the last that the controller said of a member is a warning
// of one of the reasons.
func told(m *facts.Member, reasons ...string) bool {
	warning := m.Warning()
	return warning != nil && slices.Contains(reasons, warning.Reason)
}
