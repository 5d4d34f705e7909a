// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/explain"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/controller/properties"
)

var memberChecks = []Check{
	{
		Name: "joined", About: "each cluster has a credential of every other cluster",
		run: func(s *Set, c *Cluster) (found []problem) {
			for _, other := range s.Clusters {
				if other == c || !reached(other) || other.ID == "" || other.ID == c.ID || c.SecretsUnseen != nil {
					continue
				}
				if m := c.Member(other.ID); m == nil || m.Secret == nil && m.Origin() == "" {
					found = append(found, wrong(s.join(c, other.ID),
						"There is no credential of %s, so nothing is imported from it.", other.ID))
				}
			}
			return found
		},
	},
	ofMembers("credential-usable", "credentials are usable", func(s *Set, c *Cluster, m *facts.Member) []problem {
		if m.Secret == nil {
			return nil
		}
		what := fmt.Sprintf("The controller rejects Secret %s: %v.", m.Secret.Name, m.Refused)
		switch {
		case m.ID == c.ID && s.twin(c) != nil:
			return nil // the id is what is wrong
		case m.ID == c.ID:
			return []problem{wrong(c.kubectl("-n %s delete secret %s", c.System, m.Secret.Name),
				"Secret %s has a credential of %s, which is this cluster itself.", m.Secret.Name, m.ID)}
		case m.Refused == nil:
			return nil
		case member.ValidateID(m.ID) != nil:
			return []problem{{what: what, fix: c.label(m, "<id of the cluster whose API server it names>")}}
		}
		if m.Invalid == "" {
			return []problem{{what: what, fix: s.join(c, m.ID)}}
		}
		return []problem{{what: what, fix: explain.Correct(c.Facts, m)}}
	}),
	ofMembers("credential-lasts", "no credential expires soon", func(s *Set, c *Cluster, m *facts.Member) []problem {
		switch left := m.Expires.Sub(c.Now); {
		case m.Expires.IsZero():
		case left <= 0:
			return []problem{wrong(s.join(c, m.ID), "The credential of %s expired %s ago, so its changes are not imported.", m.ID,
				(-left).Round(time.Minute))}
		case m.Ending(c.Now):
			return []problem{odd(s.join(c, m.ID), "The credential of %s expires in %s, and was not renewed.", m.ID,
				left.Round(time.Minute))}
		}
		return nil
	}),
	ofMembers("credential-single", "each member has one credential",
		func(_ *Set, c *Cluster, m *facts.Member) (found []problem) {
			for _, name := range m.Surplus {
				found = append(found, odd(c.kubectl("-n %s delete secret %s", c.System, name),
					"Secret %s is a second credential of %s and is not used; Secret %s is.", name, m.ID, m.Secret.Name))
			}
			return found
		}),
	ofMembers("member-reachable", "the controller can read its members",
		func(s *Set, c *Cluster, m *facts.Member) []problem {
			warning := m.Warning(memberstate.EventMemberUnreachable, memberstate.EventMemberCredentialInvalid)
			if warning == nil || m.Refused != nil || m.ID == c.ID {
				return nil // what is refused is told above
			}
			fix := s.join(c, m.ID)
			if other := s.cluster(m.ID); other != nil && m.Credential.Config != nil &&
				m.Credential.Config.Host == other.Server && !strings.Contains(warning.Message, "nauthorized") {
				// join alone would keep the address.
				fix += " --server " + other.Context + "=<address of the API server of " + m.ID + " as " + c.ID +
					" reaches it>"
			}
			return []problem{wrong(fix, "The controller cannot read %s: %s.", m.ID,
				strings.TrimSuffix(warning.Message, "."))}
		}),
	ofMembers("member-identity", "credentials refer to the clusters that they name",
		func(s *Set, c *Cluster, m *facts.Member) []problem {
			switch is := m.Holder(); {
			case m.Secret == nil || m.ID == c.ID:
				return nil
			case is != "" && is != m.ID && member.ValidateID(is) == nil:
				return []problem{wrong(s.mistaken(c, m, is), "Secret %s is for member %s, but refers to a cluster with the id %s.",
					m.Secret.Name, m.ID, is)}
			}
			if warning := m.Warning(memberstate.EventMemberIdentityMismatch); warning != nil {
				return []problem{wrong(s.join(c, m.ID), "Secret %s does not refer to %s: %s.", m.Secret.Name, m.ID,
					warning.Message)}
			}
			return nil
		}),
	ofMembers("member-quarantined", "no member is quarantined", func(s *Set, c *Cluster, m *facts.Member) []problem {
		warning := m.Warning(memberstate.EventMemberQuarantined)
		if warning == nil || m.State() == liveness.Fresh || m.Warning(memberstate.EventMemberIdentityMismatch) != nil {
			return nil // where it is another cluster by mistake, there is nothing to confirm
		}
		if strings.Contains(warning.Message, properties.ClusterSet) {
			return []problem{wrong(s.sameSet(c, m), "%s.", warning.Message)}
		}
		token := memberstate.ConfirmToken(warning.Message)
		if token == "" {
			return []problem{wrong(s.join(c, m.ID), "%s.", warning.Message)}
		}
		return []problem{wrong("Verify the exports of the member: `kubectl --context "+s.contextOf(m.ID)+
			" get serviceexports -A`. If they are correct, confirm them: `"+
			c.kubectl("-n %s annotate secret %s %s=%s --overwrite", c.System, m.Secret.Name,
				memberstate.AnnotationConfirm, token)+"`.", "%s.", warning.Message)}
	}),
	ofMembers("member-fresh", "heartbeats of members arrive", func(s *Set, c *Cluster, m *facts.Member) []problem {
		stale := "" // why
		if warning := m.Warning(memberstate.EventMemberStale); warning != nil {
			stale = warning.Message
		}
		switch {
		case m.Secret == nil || m.Refused != nil || m.ID == c.ID:
			return nil
		case m.Lease == nil:
			return []problem{wrong(c.cause(),
				"The controller has not read the credential of %s.", m.ID)}
		case m.State() == liveness.Fresh, m.Warning(memberstate.EventMemberQuarantined) != nil:
			return nil
		case m.Path() == liveness.Unreachable && (c.Now.Sub(m.Heard()) < 4*member.HeartbeatInterval ||
			strings.Contains(stale, memberstate.CannotBeReached)):
			return nil // pods-reached reports it
		}
		fix := fmt.Sprintf("Make sure that the API server and the controller of %s run, and that %s can reach them. To "+
			"diagnose them: `kubectl clusterset check --contexts %s`.", m.ID, c.ID, s.contextOf(m.ID)+s.flag()+c.system())
		if strings.Contains(stale, memberstate.FailedRepeatedly) {
			fix = "Wait until its heartbeats have arrived for a while without a gap."
		}
		if m.Heard().IsZero() {
			return []problem{wrong(fix, "%s is %s: no heartbeat has ever arrived.", m.ID, m.State())}
		}
		return []problem{wrong(fix, "%s is %s: its last heartbeat arrived %s ago.", m.ID, m.State(),
			c.Now.Sub(m.Heard()).Round(time.Second))}
	}),
	ofMembers("pods-reached", "connections to the pods of members succeed", podsReached),
	ofMembers("drained", "no member is drained", func(_ *Set, c *Cluster, m *facts.Member) []problem {
		if !m.Drained() {
			return nil
		}
		return []problem{odd("kubectl clusterset undrain "+m.ID+" --contexts "+c.Context+" --partial"+c.system(),
			"%s is drained: its endpoints are used only if no other cluster has a ready endpoint.", m.ID)}
	}),
	{Name: "drained-itself", About: "the cluster itself is not drained", run: func(_ *Set, c *Cluster) []problem {
		if !c.Drained() {
			return nil
		}
		return []problem{odd("kubectl clusterset undrain "+c.ID+" --contexts "+c.Context+" --partial"+c.system(),
			"This cluster is drained: its endpoints are used only if no other cluster has a ready endpoint.")}
	}},
}

// podsReached tells what the controller knows of the path to the pods of a member.
func podsReached(s *Set, c *Cluster, m *facts.Member) []problem {
	test := "kubectl clusterset test connectivity --contexts " + c.Context + "," + s.contextOf(m.ID) + s.flag() + c.system()
	switch m.Path() {
	case liveness.Unreachable:
		return []problem{wrong(test, "Connections from %s to the pods of %s fail: its endpoints are used only if no other "+
			"cluster has a ready endpoint.", c.ID, m.ID)}
	case liveness.Unproven:
		return []problem{wrong(test, "Connections from %s to the pods of %s fail, as to those of all members: the pod "+
			"network of %s is probably at fault.", c.ID, m.ID, c.ID)}
	case liveness.Reachable:
		return nil
	case liveness.PathUnknown:
	}
	heartbeat := s.heartbeat(m)
	if m.Lease == nil || m.State() != liveness.Fresh || m.ID == c.ID || heartbeat == nil || c.Heartbeat == nil ||
		member.CanariesOf(heartbeat) == "" || member.CanariesOf(c.Heartbeat) == "" {
		return nil // one of the two takes no part
	}
	return []problem{odd(test, "No canary of %s (%s) has answered %s yet, so that failing connections to its pods are "+
		"not noticed. Allow connections between the controllers.", m.ID, canariesOf(heartbeat), c.ID)}
}

// canariesOf are the addresses of the canaries in a heartbeat.
func canariesOf(heartbeat *coordinationv1.Lease) string {
	canaries, err := canary.Decode(member.CanariesOf(heartbeat))
	if err != nil {
		return err.Error()
	}
	addresses := make([]string, len(canaries))
	for i, each := range canaries {
		addresses[i] = each.Address.String()
	}
	return strings.Join(addresses, ", ")
}

// heartbeat is that of a member's controller, nil if it is unknown.
func (s *Set) heartbeat(m *facts.Member) *coordinationv1.Lease {
	if c := s.cluster(m.ID); c != nil {
		return c.Heartbeat
	}
	return m.Heartbeat
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
	return c.kubectl("-n %s label secret %s %s --overwrite", c.System, m.Secret.Name, explain.Assign(member.ClusterLabel, id))
}

// confine is the command that confines the addresses of a member to ranges.
func (c *Cluster) confine(m *facts.Member, ranges string) string {
	return c.kubectl("-n %s annotate secret %s %s --overwrite", c.System, m.Secret.Name,
		explain.Assign(member.CIDRsAnnotation, ranges))
}

// mistaken is the fix for a credential that refers to a cluster with another id.
func (s *Set) mistaken(c *Cluster, m *facts.Member, is string) string {
	uid := m.Heartbeat.Annotations[member.HeartbeatUIDAnnotation]
	of := s.cluster(is)
	switch {
	case of != nil && uid != "" && of.UID != uid:
		to := &Cluster{
			Context: "<context of the cluster whose API server it names>",
			Facts:   &facts.Facts{System: c.System, Set: c.Set},
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
