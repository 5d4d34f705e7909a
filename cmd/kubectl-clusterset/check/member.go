// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// expiresSoon is how long before its end a credential should be replaced, at
// most: a quarter of its life will do.
const expiresSoon = 14 * 24 * time.Hour

var memberChecks = []Check{
	{
		Name: "joined", About: "each cluster has the credential of each other",
		run: func(s *Set, c *Cluster) (found []problem) {
			for _, other := range s.Clusters {
				if other == c || !reached(other) || other.ID == "" || other.ID == c.ID || c.SecretsUnseen != nil {
					continue
				}
				if m := c.Member(other.ID); m == nil || m.Secret == nil {
					found = append(found, wrong(s.join(c, other.ID),
						"It has no credential of %s, so that it imports nothing of it.", other.ID))
				}
			}
			return found
		},
	},
	ofMembers("credential-usable", "the credentials can be used", func(s *Set, c *Cluster, m *facts.Member) []problem {
		if m.Secret == nil {
			return nil
		}
		what := fmt.Sprintf("Secret %s is refused: %v.", m.Secret.Name, m.Refused)
		switch {
		case m.ID == c.ID && s.twin(c) != nil:
			return nil // the id is what is wrong
		case m.ID == c.ID:
			return []problem{wrong(c.kubectl("-n %s delete secret %s", c.System, m.Secret.Name),
				"Secret %s is of %s, which is this cluster itself.", m.Secret.Name, m.ID)}
		case m.Refused == nil:
			return nil
		case member.ValidateID(m.ID) != nil:
			return []problem{{what: what, fix: c.label(m, "<id of the cluster whose API server it names>")}}
		}
		if _, err := member.ParseKubeconfig(m.Secret.Data[member.KubeconfigKey]); err != nil {
			return []problem{{what: what, fix: s.join(c, m.ID)}}
		}
		return []problem{{what: what, fix: c.confine(m, "<ranges of its pods>")}}
	}),
	ofMembers("credential-lasts", "no credential ends soon", func(s *Set, c *Cluster, m *facts.Member) []problem {
		fix, soon := s.join(c, m.ID), expiresSoon
		if !m.Issued.IsZero() {
			soon = min(soon, m.Expires.Sub(m.Issued)/4) // of one whose life is short on purpose
		}
		switch left := m.Expires.Sub(c.Now); {
		case m.Expires.IsZero():
			return nil
		case left <= 0:
			return []problem{wrong(fix, "The credential of %s ended %s ago: nothing new is learned of it.", m.ID,
				(-left).Round(time.Minute))}
		case left < soon:
			return []problem{odd(fix, "The credential of %s ends in %s.", m.ID, left.Round(time.Minute))}
		}
		return nil
	}),
	ofMembers("credential-single", "each member has one credential",
		func(_ *Set, c *Cluster, m *facts.Member) (found []problem) {
			for _, name := range m.Surplus {
				found = append(found, odd(c.kubectl("-n %s delete secret %s", c.System, name),
					"Secret %s is a second credential of %s and is not used; %s is.", name, m.ID, m.Secret.Name))
			}
			return found
		}),
	ofMembers("member-reachable", "the controller reads its members",
		func(s *Set, c *Cluster, m *facts.Member) []problem {
			warning := m.Warning(memberstate.EventMemberUnreachable, memberstate.EventMemberCredentialInvalid)
			if warning == nil || m.Refused != nil || m.ID == c.ID {
				return nil // what is refused is told above
			}
			fix := s.join(c, m.ID)
			if other := s.cluster(m.ID); other != nil && m.Credential.Config != nil &&
				m.Credential.Config.Host == other.Server && !strings.Contains(warning.Message, "nauthorized") {
				// Joined again, it would use the same address.
				fix += " --server " + other.Context + "=<address of the API server of " + m.ID + " as " + c.ID +
					" reaches it>"
			}
			return []problem{wrong(fix, "The controller cannot read %s: %s.", m.ID,
				strings.TrimSuffix(warning.Message, "."))}
		}),
	ofMembers("member-identity", "members are who their credentials say",
		func(s *Set, c *Cluster, m *facts.Member) []problem {
			switch is := m.Holder(); {
			case m.Secret == nil || m.ID == c.ID:
				return nil
			case is != "" && is != m.ID && member.ValidateID(is) == nil:
				return []problem{wrong(s.mistaken(c, m, is), "The member that Secret %s calls %s calls itself %s.",
					m.Secret.Name, m.ID, is)}
			}
			if warning := m.Warning(memberstate.EventMemberIdentityMismatch); warning != nil {
				return []problem{wrong(s.join(c, m.ID), "Secret %s does not lead to %s: %s.", m.Secret.Name, m.ID,
					warning.Message)}
			}
			return nil
		}),
	ofMembers("member-held", "what members say is believed", func(s *Set, c *Cluster, m *facts.Member) []problem {
		warning := m.Warning(memberstate.EventMemberQuarantined)
		if warning == nil || m.State() == liveness.Fresh || m.Warning(memberstate.EventMemberIdentityMismatch) != nil {
			return nil // where it is another cluster by mistake, there is nothing to confirm
		}
		token := warning.Message[strings.LastIndex(warning.Message, " ")+1:]
		return []problem{wrong("Look whether it exports what it should: `kubectl --context "+s.contextOf(m.ID)+
			" get serviceexports -A`. If so: `"+
			c.kubectl("-n %s annotate secret %s %s=%s --overwrite", c.System, m.Secret.Name,
				memberstate.AnnotationConfirm, token)+"`.", "%s.", warning.Message)}
	}),
	ofMembers("member-fresh", "members are heard", func(s *Set, c *Cluster, m *facts.Member) []problem {
		switch {
		case m.Secret == nil || m.Refused != nil || m.ID == c.ID:
			return nil
		case m.Lease == nil:
			return []problem{wrong("Have the controller take it up. "+c.log(),
				"Its controller has not taken up the credential of %s.", m.ID)}
		case m.State() == liveness.Fresh, m.Warning(memberstate.EventMemberQuarantined) != nil:
			return nil
		}
		fix := fmt.Sprintf("Have the API server and the controller of %s run, and be reachable from %s. What is wrong in it is said by `kubectl clusterset check --contexts %s`.", m.ID, c.ID, s.contextOf(m.ID)+s.flag()+c.system())
		if m.Warning(memberstate.EventMemberStale) != nil &&
			strings.Contains(m.Warning(memberstate.EventMemberStale).Message, "over and over") {
			fix = "Wait: it is believed again once it was heard for a while."
		}
		if m.Heard().IsZero() {
			return []problem{wrong(fix, "%s is %s: it was never heard.", m.ID, m.State())}
		}
		return []problem{wrong(fix, "%s is %s: it was last heard %s ago.", m.ID, m.State(),
			c.Now.Sub(m.Heard()).Round(time.Second))}
	}),
	ofMembers("drained", "no member is drained", func(_ *Set, c *Cluster, m *facts.Member) []problem {
		if !m.Drained() {
			return nil
		}
		return []problem{odd("kubectl clusterset undrain "+m.ID+" --contexts "+c.Context+" --partial"+c.system(),
			"%s is drained: its endpoints are used only where no other cluster has a ready one.", m.ID)}
	}),
	{Name: "drained-itself", About: "the cluster does not drain itself", run: func(_ *Set, c *Cluster) []problem {
		if !c.Drained() {
			return nil
		}
		return []problem{odd("kubectl clusterset undrain "+c.ID+" --contexts "+c.Context+" --partial"+c.system(),
			"It is drained: its own endpoints are used only where no other cluster has a ready one.")}
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

// label is the command that makes a credential that of another id.
func (c *Cluster) label(m *facts.Member, id string) string {
	return c.kubectl("-n %s label secret %s %s=%s --overwrite", c.System, m.Secret.Name, member.ClusterLabel, id)
}

// confine is the command that confines the addresses of a member to ranges.
func (c *Cluster) confine(m *facts.Member, ranges string) string {
	return c.kubectl("-n %s annotate secret %s %s=%s --overwrite", c.System, m.Secret.Name, member.CIDRsAnnotation,
		ranges)
}

// mistaken is what fixes a credential for the API server of a cluster with another id.
func (s *Set) mistaken(c *Cluster, m *facts.Member, is string) string {
	uid := m.Heartbeat.Annotations[member.HeartbeatUIDAnnotation]
	of := s.cluster(is)
	switch {
	case of != nil && uid != "" && of.UID != uid:
		to := &Cluster{
			Context: "<context of the cluster whose API server it names>",
			Facts:   &facts.Facts{System: c.System},
		}
		for _, other := range s.Clusters {
			if reached(other) && other.UID == uid {
				to = other
			}
		}
		return to.rename()
	case s.cluster(m.ID) != nil:
		return s.join(c, m.ID)
	case is == c.ID || c.Member(is) != nil:
		return c.kubectl("-n %s delete secret %s", c.System, m.Secret.Name)
	}
	return c.label(m, is)
}
