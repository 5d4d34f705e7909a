// SPDX-License-Identifier: Apache-2.0

// Package relay keeps the mailboxes of the local cluster on its relays (docs/design/relay.md): it writes the
// EndpointSlices that the cluster publishes, and its heartbeat, for clusters that do not read it directly.
package relay

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

// Reasons of Events: on the Secret of a relay, and EventSigningKeyInvalid on that of the signing key.
const (
	EventRelayInvalid      = "RelayInvalid"
	EventSigningKeyInvalid = "SigningKeyInvalid"
	EventMailboxFailed     = "MailboxFailed"
	EventMailboxWritten    = "MailboxWritten"
)

// Local is what the local cluster has. Its objects are shared and are not changed.
type Local interface {
	// Relays returns the Secrets of relays, and SigningKey that of the signing key, nil without one.
	Relays() []*corev1.Secret
	SigningKey() *corev1.Secret
	// Published returns the names of the EndpointSlices that a cluster publishes.
	Published(cluster string) []types.NamespacedName
	// PublishedSlice returns such an EndpointSlice, nil if the cluster publishes none of that name.
	PublishedSlice(cluster string, name types.NamespacedName) *discoveryv1.EndpointSlice
}

// Config is what a Publisher needs.
type Config struct {
	// Source is the local cluster.
	Source   mailbox.Source
	Local    Local
	Recorder record.EventRecorder
	Clock    clock.WithTicker
	// Dial connects to relays; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	connect func(member.Credential, string) (*client, error) // nil means connect
	changed func(types.NamespacedName)                       // SliceChanged of the Publisher
}

// A Publisher keeps the mailboxes of the local cluster on all relays during one term of a leader. Without a signing key
// it writes nothing. It is safe for concurrent use.
type Publisher struct {
	config  Config
	refresh chan struct{}

	mu      sync.Mutex
	relays  map[string]*relay // by name of their Secret
	renewed *coordinationv1.Lease
	// reported are the errors of Secrets that were reported, by name.
	reported map[string]string
}

// NewPublisher returns a Publisher that does not run yet.
func NewPublisher(config Config) *Publisher {
	if config.connect == nil {
		config.connect = connect
	}
	p := &Publisher{refresh: make(chan struct{}, 1), relays: map[string]*relay{}, reported: map[string]string{}}
	config.changed = p.SliceChanged
	p.config = config
	return p
}

// Refresh is called when a Secret of a relay, or of the signing key, changed.
func (p *Publisher) Refresh() {
	select {
	case p.refresh <- struct{}{}:
	default: // a signal already pending covers this change
	}
}

// SliceChanged is called when an EndpointSlice of the local cluster changed, whether or not it is published.
func (p *Publisher) SliceChanged(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, each := range p.relays {
		each.changed(name)
	}
}

// Renewed is called with each heartbeat of the local cluster after it was written. It keeps the Lease.
func (p *Publisher) Renewed(lease *coordinationv1.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.renewed = lease
	for _, each := range p.relays {
		each.beat(lease)
	}
}

// Beats returns when the last heartbeat of each relay was written, by the name of the relay: before the first, when the
// first attempt began.
func (p *Publisher) Beats() map[string]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	beats := map[string]time.Time{}
	for _, each := range p.relays {
		beats[each.name] = each.beaten()
	}
	return beats
}

// Run writes the mailboxes until the context ends.
func (p *Publisher) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	var ledger *book
	var key []byte
	for {
		if text := p.keyText(); ledger == nil || !bytes.Equal(text, key) {
			key, ledger = text, p.newBook(ctx, text)
		}
		p.update(ctx, &group, ledger)
		select {
		case <-ctx.Done():
			return
		case <-p.refresh:
		}
	}
}

// keyText returns the text of the signing key, nil without one.
func (p *Publisher) keyText() []byte {
	if secret := p.config.Local.SigningKey(); secret != nil {
		return append([]byte{}, secret.Data[mailbox.SigningKeyKey]...)
	}
	return nil
}

// newBook returns the book of a signing key, without a key if there is none that is valid.
func (p *Publisher) newBook(ctx context.Context, text []byte) *book {
	b := &book{source: p.config.Source, clock: p.config.Clock}
	secret := p.config.Local.SigningKey()
	if secret == nil || text == nil {
		return b
	}
	key, err := mailbox.ParseSigningKey(text)
	if err != nil {
		err = fmt.Errorf("data %s: %w", mailbox.SigningKeyKey, err)
	} else {
		b.key = key
	}
	p.report(ctx, secret, EventSigningKeyInvalid, err)
	return b
}

// report records an error of a Secret, unless it was reported.
func (p *Publisher) report(ctx context.Context, secret *corev1.Secret, reason string, err error) {
	p.mu.Lock()
	before, text := p.reported[secret.Name], ""
	if err != nil {
		text = err.Error()
	}
	p.reported[secret.Name] = text
	p.mu.Unlock()
	if text == "" || text == before {
		return
	}
	klog.FromContext(ctx).Error(err, "Refused a Secret", "secret", klog.KObj(secret))
	p.config.Recorder.Event(secret, corev1.EventTypeWarning, reason, text)
}

// update starts and stops the relays so that they are those of the Secrets.
func (p *Publisher) update(ctx context.Context, group *sync.WaitGroup, ledger *book) {
	desired := map[string]*relay{}
	secrets := slices.Clone(p.config.Local.Relays())
	slices.SortFunc(secrets, func(a, b *corev1.Secret) int { return strings.Compare(a.Name, b.Name) })
	for _, secret := range secrets {
		if ledger.key == nil {
			break
		}
		kubeconfig := secret.Data[member.KubeconfigKey]
		p.mu.Lock()
		before := p.relays[secret.Name]
		p.mu.Unlock()
		if before != nil && before.book == ledger && bytes.Equal(before.kubeconfig, kubeconfig) {
			before.secret.Store(secret)
			desired[secret.Name] = before
			continue
		}
		credential, err := credentialOf(kubeconfig)
		p.report(ctx, secret, EventRelayInvalid, err)
		if err != nil {
			continue
		}
		if p.config.Dial != nil {
			credential.Config.Dial = p.config.Dial
		}
		desired[secret.Name] = newRelay(p.config, ledger, secret, credential)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.relays
	p.relays = desired
	for name, each := range before {
		if desired[name] != each {
			each.stop()
		}
	}
	for name, each := range desired {
		former := before[name]
		if former == each {
			continue
		}
		if former != nil {
			each.at = former.beaten()
		}
		each.beat(p.renewed)
		running, stop := context.WithCancel(ctx)
		each.stop = stop
		group.Go(func() {
			defer stop()
			if former != nil {
				<-former.done // two writers of a mailbox would fight
			}
			each.run(running)
		})
	}
}

func credentialOf(kubeconfig []byte) (member.Credential, error) {
	if len(kubeconfig) == 0 {
		return member.Credential{}, fmt.Errorf("the Secret has no data under the key %q: put the kubeconfig there",
			member.KubeconfigKey)
	}
	return member.ParseKubeconfig(kubeconfig)
}

// A book is the statements of one key about the slices of the local cluster: the same in all mailboxes, so that a
// reader may change from one to another. It is safe for concurrent use.
type book struct {
	source mailbox.Source
	clock  clock.PassiveClock
	key    ed25519.PrivateKey

	mu      sync.Mutex
	entries map[types.NamespacedName]mailbox.Entry
	highest int64
}

// entry returns the statement about a slice as it is now.
func (b *book) entry(name types.NamespacedName, digest mailbox.Digest) mailbox.Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	entry, exists := b.entries[name]
	if exists && entry.Digest == digest {
		return entry
	}
	entry = mailbox.Entry{Counter: b.nextLocked(), Digest: digest}
	if b.entries == nil {
		b.entries = map[types.NamespacedName]mailbox.Entry{}
	}
	b.entries[name] = entry
	return entry
}

// next returns the counter of the next statement.
func (b *book) next() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.nextLocked()
}

func (b *book) nextLocked() int64 {
	b.highest = mailbox.NextCounter(b.clock.Now(), b.highest)
	return b.highest
}

// found notes a counter that the key used before.
func (b *book) found(counter int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.highest = max(b.highest, counter)
}

// adopt makes the entry of a mailbox, which another leader may have written, that of a slice as it is now, unless there
// is a newer one. It reports whether other mailboxes may have an older one.
func (b *book) adopt(name types.NamespacedName, entry mailbox.Entry) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, exists := b.entries[name]
	if exists && (before.Digest != entry.Digest || before.Counter >= entry.Counter) {
		return false
	}
	if b.entries == nil {
		b.entries = map[types.NamespacedName]mailbox.Entry{}
	}
	b.entries[name] = entry
	return exists
}

// forget forgets a slice that is not published anymore.
func (b *book) forget(name types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.entries, name)
}
