// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

// A Relay is an API server through which clusters read each other (docs/design/relay.md).
type Relay struct {
	// Name is that of the relay in this cluster.
	Name string
	// Secret has its credential. It is shared and must not be changed.
	Secret *corev1.Secret
	// Credential reaches the relay. Its ContextNamespace is the prefix of the mailboxes: see mailbox.Namespace.
	Credential Credential
}

// ParseRelay returns the relay of a Secret with mailbox.RelayLabel. As the kubeconfig of a member, that of a relay may
// run no programs and read no files.
func ParseRelay(secret *corev1.Secret) (Relay, error) {
	relay := Relay{Name: secret.Labels[mailbox.RelayLabel], Secret: secret}
	if problems := validation.IsDNS1123Label(relay.Name); len(problems) > 0 {
		return relay, fmt.Errorf("the name %q of the relay in the label %s is no DNS label: correct it", relay.Name,
			mailbox.RelayLabel)
	}
	if relay.Name == Direct {
		return relay, fmt.Errorf("the relay cannot have the name %s, which is that of the path without a relay: choose another "+
			"name for the label %s", Direct, mailbox.RelayLabel)
	}
	kubeconfig := secret.Data[KubeconfigKey]
	if len(kubeconfig) == 0 {
		return relay, fmt.Errorf("the Secret of the relay has no data under the key %q: put the kubeconfig there",
			KubeconfigKey)
	}
	var err error
	relay.Credential, err = ParseKubeconfig(kubeconfig)
	return relay, err
}

// Life returns the validity of the credential as it is now.
func (r Relay) Life() Life { return r.Credential.Life() }

// relays are those that were parsed, by Secret.
type relays map[*corev1.Secret]parsedRelay

type parsedRelay struct {
	Relay
	err error
}

// gatherRelays returns the relays of Secrets, the oldest Secret of each name, sorted by name, and parses those that
// were not parsed before. An invalid relay is a problem, and not used.
func gatherRelays(secrets []*corev1.Secret, before relays) (valid []Relay, all relays, problems []Problem) {
	all = relays{}
	known := map[string]*corev1.Secret{}
	secrets = slices.SortedFunc(slices.Values(secrets), func(a, b *corev1.Secret) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, secret := range secrets {
		relay, parsed := before[secret]
		if !parsed {
			relay.Relay, relay.err = ParseRelay(secret)
		}
		all[secret] = relay
		err := relay.err
		if first := known[relay.Name]; err == nil && first != nil {
			err = fmt.Errorf("relay %s is already that of the older Secret %s: delete one of the two", relay.Name, first.Name)
		}
		if err != nil {
			problems = append(problems, Problem{Candidate: ofRelay(secret), Err: err, Refused: true})
			continue
		}
		known[relay.Name] = secret
		valid = append(valid, relay.Relay)
	}
	slices.SortFunc(valid, func(a, b Relay) int { return cmp.Compare(a.Name, b.Name) })
	return valid, all, problems
}

// ofRelay names the Secret of a relay in reports. It is no candidate.
func ofRelay(secret *corev1.Secret) *Candidate {
	return &Candidate{Kind: kindSecret, Name: NameOf(secret), Object: secret}
}

// A signer is a public key of a member.
type signer struct {
	id  string
	key ed25519.PublicKey
}

// signersOf returns the keys of a PEM text.
func signersOf(text []byte) ([]signer, error) {
	keys, err := mailbox.ParsePublicKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mailbox.PublicKeysKey, err)
	}
	signers := make([]signer, len(keys))
	for i, key := range keys {
		sum := sha256.Sum256(key)
		signers[i] = signer{hex.EncodeToString(sum[:8]), key}
	}
	return signers, nil
}

// Relays returns the valid relays, sorted by name. The list is shared and must not be changed.
func (s *Members) Relays() []Relay { return *s.usable.Load() }

// refreshRelays reads the Secrets of relays, and returns the problems with them.
func (s *Members) refreshRelays() (problems []Problem) {
	if s.config.Relays != nil {
		var usable []Relay
		usable, s.relays, problems = gatherRelays(s.config.Relays(), s.relays)
		s.usable.Store(&usable)
	}
	return problems
}
