// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

// Direct is the name of the path of a member that its own credential is for.
const Direct = "direct"

// A path is one way to read a member.
type path struct {
	relay      string // the name of the relay, empty for the direct path
	credential Credential
	signers    []signer // of the member, for a relay
	// version differs if the credential or the keys do. Of the direct path it is empty: another one joins anew.
	version [sha256.Size]byte
	client  [sha256.Size]byte // identifies the credential of a relay
}

// name names the path in the log and in annotations.
func (p path) name() string { return cmp.Or(p.relay, Direct) }

// at names the path in a message after the name of the member.
func (p path) at() string {
	if p.relay == "" {
		return ""
	}
	return " at relay " + p.relay
}

// pathsOf returns the paths to a member: the direct one, if it has a credential, and all relays, if it has keys, in an
// order that differs by member.
func pathsOf(s *source, relays []Relay) []path {
	var all []path
	if s.credential.Config != nil {
		all = append(all, path{credential: s.credential})
	}
	signers := *s.signers.Load()
	if len(signers) == 0 {
		return all
	}
	order := func(relay string) string {
		sum := sha256.Sum256([]byte(s.cluster + "/" + relay))
		return string(sum[:])
	}
	relays = slices.SortedFunc(slices.Values(relays), func(a, b Relay) int {
		return cmp.Compare(order(a.Name), order(b.Name))
	})
	for _, relay := range relays {
		p := path{relay: relay.Name, credential: relay.Credential, signers: signers}
		p.credential.Namespace = mailbox.Namespace(relay.Credential.ContextNamespace, s.cluster)
		text := slices.Clone(relay.Secret.Data[KubeconfigKey])
		p.client = sha256.Sum256(text)
		for _, signer := range signers {
			text = append(text, signer.id...)
		}
		p.version = sha256.Sum256(text)
		all = append(all, p)
	}
	return all
}

// paths are the paths to one member, which change. They are safe for concurrent use.
type paths struct {
	mu      sync.Mutex
	all     []path
	changed chan struct{} // closed by the next set
}

func newPaths(all []path) *paths { return &paths{all: all, changed: make(chan struct{})} }

// get returns the paths, and a channel that is closed once they change.
func (p *paths) get() ([]path, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all, p.changed
}

// set replaces the paths.
func (p *paths) set(all []path) {
	p.mu.Lock()
	defer p.mu.Unlock()
	same := func(a, b path) bool { return a.relay == b.relay && a.version == b.version }
	if slices.EqualFunc(p.all, all, same) {
		return
	}
	p.all = all
	close(p.changed)
	p.changed = make(chan struct{})
}

// has reports whether a path is still one of them, with the same credential.
func has(all []path, one path) bool {
	return slices.ContainsFunc(all, func(each path) bool { return each.relay == one.relay && each.version == one.version })
}

// next returns the path after one of them, or the first one.
func next(all []path, after string) path {
	at := slices.IndexFunc(all, func(each path) bool { return each.name() == after })
	return all[(at+1)%len(all)]
}
