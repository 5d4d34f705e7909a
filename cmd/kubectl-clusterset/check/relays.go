// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

// relays reports which relays are not usable, and why what the cluster publishes does not reach them.
func relays(_ *Set, c *Cluster) (found []problem) {
	for i := range c.Relays {
		relay := &c.Relays[i]
		switch {
		case relay.Refused != nil:
			found = append(found, wrong(fmt.Sprintf("Correct the label or the kubeconfig of Secret %s, or delete it.",
				relay.Secret.Name), "The controller rejects Secret %s: %v.", relay.Secret.Name, relay.Refused))
		case relay.Failed != "":
			found = append(found, wrong(renewRelay(relay)+" If it is valid, make sure that "+c.ID+" reaches the relay, and that "+
				"the mailbox and its rights exist there.", "%s.", strings.TrimSuffix(relay.Failed, ".")))
		}
	}
	if c.Unsigned != nil && len(c.Exports) > 0 {
		found = append(found, odd("If other clusters read "+c.ID+" through a relay, make a key: `openssl genpkey -algorithm "+
			"ed25519 -out <file>`, `"+c.kubectl("-n %s create secret generic %s --from-file %s=<file>", c.System,
			mailbox.SigningKeySecret, mailbox.SigningKeyKey)+"`.",
			"There are relays, but this cluster publishes nothing there: %v.", c.Unsigned))
	}
	return found
}

// renewRelay is the instruction to replace the credential of a relay.
func renewRelay(relay *facts.Relay) string {
	return fmt.Sprintf("Put a kubeconfig with a new credential into Secret %s.", relay.Secret.Name)
}

// atRelay stands before the name of a relay in the messages of the controller.
const atRelay = " at relay "

// throughRelays is the instruction to make a member readable that is read through relays, by the error.
func (s *Set) throughRelays(c *Cluster, m *facts.Member, message string) string {
	name := "of the member"
	if m.Secret != nil {
		name = m.Secret.Name
	}
	named := m.Relay()
	if _, after, found := strings.Cut(message, atRelay); found {
		named, _, _ = strings.Cut(after, " ")
		named = strings.TrimSuffix(named, ":")
	}
	switch {
	case named == "":
		return "Add the Secret of a relay, or a kubeconfig to Secret " + name + "."
	case strings.Contains(message, mailbox.ErrSignature.Error()):
		return fmt.Sprintf("Add the public key of Secret %s of %s to %s of Secret %s.", mailbox.SigningKeySecret, m.ID,
			mailbox.PublicKeysKey, name)
	}
	for i := range c.Relays {
		relay := &c.Relays[i]
		if relay.Name == named && (strings.Contains(message, "nauthorized") || strings.Contains(message, "orbidden")) {
			return renewRelay(relay)
		}
	}
	return fmt.Sprintf("Make sure that %s and %s reach relay %s, and that the controller of %s runs: `kubectl clusterset "+
		"check --contexts %s`.", c.ID, m.ID, named, m.ID, c.Context+","+s.contextOf(m.ID)+s.flag()+c.system())
}

// direct reports whether a member is read with its own credential.
func direct(m *facts.Member) bool {
	return m.Through() == member.Direct || m.Through() == "" && m.Credential.Config != nil
}
