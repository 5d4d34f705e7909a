// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// cause is why no heartbeat of a member arrives.
func cause(source *facts.Source) string {
	if warning := source.Member.Warning(memberstate.EventMemberUnreachable); source.Member.Relay() != "" && warning != nil {
		return strings.TrimSuffix(warning.Message, ".")
	}
	return "the controller or the API server of " + source.Cluster + " is down or unreachable"
}

// silence says for how long no heartbeat of a member has arrived, and by which relay it is read.
func (e *Explanation) silence(source *facts.Source) string {
	from := source.Cluster
	if relay := source.Member.Relay(); relay != "" {
		from += " through relay " + relay
	}
	if source.Member.Heard().IsZero() {
		return e.Cluster + " has never received a heartbeat from " + from
	}
	return fmt.Sprintf("%s has received no heartbeat from %s for %s", e.Cluster, from,
		e.now.Sub(source.Member.Heard()).Round(time.Second))
}

// unauthorized reports whether a member is silent because it rejects the credential in use.
func (e *Explanation) unauthorized(m *facts.Member) bool {
	if m.Relay() != "" {
		return false // the credential is that of the relay
	}
	if !m.Expires.IsZero() && !e.now.Before(m.Expires) {
		return true
	}
	warning := m.Warning(memberstate.EventMemberUnreachable)
	return warning != nil && strings.Contains(warning.Message, "nauthorized")
}
