// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

const (
	// requestTimeout bounds each request.
	requestTimeout = 15 * time.Second
	// retryAfter is the time after the first failure, which doubles until retryAtMost.
	retryAfter, retryAtMost = time.Second, 30 * time.Second
	// writers is how many records are written at once.
	writers = 8
	// readAgain is the time after which the mailbox is read again, because another writer may have changed it. The first
	// time is readFirst, longer than a write of the last leader may take.
	readAgain, readFirst = 2 * time.Minute, 20 * time.Second
	// maxText is how much of an error of the relay is logged and reported, in bytes.
	maxText = 1024
)

// A relay keeps the mailbox of the local cluster on one relay. One goroutine runs it; changed, beat and beaten are safe
// for concurrent use.
type relay struct {
	config     Config
	book       *book
	name       string
	kubeconfig []byte
	credential member.Credential
	secret     atomic.Pointer[corev1.Secret] // the latest version, for Events
	stop       func()
	done       chan struct{} // closed when run returns

	wake chan struct{}
	mu   sync.Mutex
	// due are the slices to look at; nil while the mailbox is not known.
	due     map[types.NamespacedName]struct{}
	renewed *coordinationv1.Lease
	at      time.Time // of the last heartbeat, or of the first attempt

	// has is what the mailbox has, and vouched the renewal that its heartbeat is of.
	writing sync.Mutex
	has     *mailbox.Ledger
	vouched *coordinationv1.Lease
	foreign map[string]struct{} // names of records to delete
	failing bool                // as reported
	spoke   bool                // the mailbox was logged as written
}

func newRelay(config Config, ledger *book, secret *corev1.Secret, credential member.Credential) *relay {
	r := &relay{
		config: config, book: ledger, name: secret.Labels[mailbox.RelayLabel],
		kubeconfig: secret.Data[member.KubeconfigKey], credential: credential, wake: make(chan struct{}, 1),
		done: make(chan struct{}), at: config.Clock.Now(),
	}
	r.secret.Store(secret)
	return r
}

// changed makes a slice due.
func (r *relay) changed(name types.NamespacedName) {
	r.mu.Lock()
	if r.due == nil {
		r.mu.Unlock()
		return // all are, once the mailbox is known
	}
	r.due[name] = struct{}{}
	r.mu.Unlock()
	r.signal()
}

// beat has the mailbox's heartbeat renewed for a renewal of the local one; nil before the first.
func (r *relay) beat(lease *coordinationv1.Lease) {
	r.mu.Lock()
	r.renewed = lease
	r.mu.Unlock()
	r.signal()
}

func (r *relay) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *relay) beaten() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

// run keeps the mailbox until the context ends.
func (r *relay) run(ctx context.Context) {
	defer close(r.done)
	delay := retryAfter
	for ctx.Err() == nil {
		began := r.config.Clock.Now()
		err := r.session(ctx)
		if ctx.Err() != nil {
			return
		}
		r.report(ctx, err)
		if r.beaten().After(began) {
			delay = retryAfter
		}
		timer := r.config.Clock.NewTimer(delay)
		delay = min(2*delay, retryAtMost)
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
}

// report records that the mailbox cannot be written, or can be again.
func (r *relay) report(ctx context.Context, err error) {
	secret, namespace := r.secret.Load(), mailbox.Namespace(r.credential.ContextNamespace, r.book.source.Cluster)
	logger := klog.FromContext(ctx).WithValues("relay", r.name, "mailbox", namespace)
	switch {
	case err != nil && !r.failing:
		if request := (*url.Error)(nil); errors.As(err, &request) {
			err = request.Err // without the long URL
		}
		if text := err.Error(); len(text) > maxText {
			err = errors.New(strings.ToValidUTF8(text[:maxText], "") + "...")
		}
		logger.Error(err, "Cannot write the mailbox; retrying")
		r.config.Recorder.Event(secret, corev1.EventTypeWarning, EventMailboxFailed, fmt.Sprintf(
			"Cannot write mailbox %s on relay %s, so that clusters which read it there demote this one: %v", namespace,
			r.name, err))
	case err == nil && (r.failing || !r.spoke):
		logger.Info("The mailbox is written", "slices", r.has.Len())
		r.spoke = true
		if !r.failing {
			break
		}
		r.config.Recorder.Event(secret, corev1.EventTypeNormal, EventMailboxWritten, fmt.Sprintf(
			"Mailbox %s on relay %s has what this cluster publishes", namespace, r.name))
	}
	r.failing = err != nil
}

// session reads what the mailbox has, and then writes what differs until a request fails.
func (r *relay) session(ctx context.Context) error {
	client, err := r.config.connect(r.credential, mailbox.Namespace(r.credential.ContextNamespace, r.book.source.Cluster))
	if err != nil {
		return err
	}
	defer client.close()
	r.mu.Lock()
	r.due = map[types.NamespacedName]struct{}{}
	r.mu.Unlock()
	if err := r.read(ctx, client); err != nil {
		return err
	}
	again := r.config.Clock.NewTimer(readFirst)
	defer again.Stop()
	delay := retryAfter
	for {
		err := r.pass(ctx, client)
		if err != nil && (ctx.Err() != nil || !refused(err)) {
			return err
		}
		if err == nil {
			delay = retryAfter
			select {
			case <-ctx.Done():
				return nil
			case <-r.wake:
			case <-again.C():
				if err := r.read(ctx, client); err != nil {
					return err
				}
				again.Reset(readAgain)
			}
			continue
		}
		// Some records are refused, and stay due. The mailbox is known, so that it is not listed again.
		r.report(ctx, err)
		timer := r.config.Clock.NewTimer(delay)
		delay = min(2*delay, retryAtMost)
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
}

// read reads what the mailbox has, and makes all due that differs. Records that the key has not signed as they are
// written again, or deleted by clean.
func (r *relay) read(ctx context.Context, client *client) error {
	r.has, r.vouched, r.foreign = &mailbox.Ledger{}, nil, map[string]struct{}{}
	keys := []ed25519.PublicKey{r.book.key.Public().(ed25519.PublicKey)}
	published, replaced := r.config.Local.Published(r.book.source.Cluster), map[string]bool{}
	for _, name := range published {
		replaced[mailbox.RecordName(name)] = true
	}
	err := client.list(ctx, r.book.source, func(record *corev1.ConfigMap) {
		slice, err := mailbox.Verify(keys, r.book.source, record)
		if err != nil {
			if !replaced[record.Name] {
				r.addForeign(record.Name)
			}
			return
		}
		r.book.found(slice.Counter)
		r.has.Put(slice.Name, slice.Entry)
	})
	if err != nil {
		return fmt.Errorf("list the records: %w", err)
	}
	lease, err := client.lease(ctx)
	if err != nil {
		return fmt.Errorf("read the heartbeat: %w", err)
	}
	if lease != nil {
		if heartbeat, err := mailbox.VerifyLease(keys, r.book.source, lease); err == nil {
			r.book.found(heartbeat.Counter)
		}
	}
	r.mu.Lock()
	for _, name := range published { // what is published since is due already
		r.due[name] = struct{}{}
	}
	for name := range r.has.All {
		r.due[name] = struct{}{}
	}
	r.mu.Unlock()
	return nil
}

// pass writes the records that are due, renews the heartbeat if the local one was renewed, and then deletes some foreign
// records. A record that cannot be written does not keep others from it, but the heartbeat.
func (r *relay) pass(ctx context.Context, client *client) error {
	r.mu.Lock()
	due, renewed := r.due, r.renewed // the renewal first: what it vouches for is due or written
	r.due = map[types.NamespacedName]struct{}{}
	r.mu.Unlock()
	if err := r.write(ctx, client, due); err != nil {
		return err
	}
	if renewed == nil || renewed == r.vouched {
		return r.clean(ctx, client)
	}
	record, err := mailbox.Lease(r.book.key, r.book.source, r.book.next(), r.has, renewed)
	if err != nil {
		return err
	}
	if err := client.renew(ctx, record); err != nil {
		return fmt.Errorf("renew the heartbeat: %w", err)
	}
	r.vouched = renewed
	r.mu.Lock()
	r.at = r.config.Clock.Now()
	r.mu.Unlock()
	if err := r.clean(ctx, client); err != nil {
		return err
	}
	r.report(ctx, nil)
	return nil
}

// write writes some records, a few at once. It returns the first error. Those that failed are due again.
func (r *relay) write(ctx context.Context, client *client, due map[types.NamespacedName]struct{}) error {
	if len(due) == 0 {
		return nil
	}
	names := make(chan types.NamespacedName)
	var group sync.WaitGroup
	var first error
	for range min(writers, len(due)) {
		group.Go(func() {
			for name := range names {
				err := r.writeOne(ctx, client, name)
				if err == nil {
					continue
				}
				r.changed(name)
				r.writing.Lock()
				if first == nil || refused(first) {
					first = fmt.Errorf("EndpointSlice %s: %w", name, err)
				}
				r.writing.Unlock()
			}
		})
	}
	for name := range due {
		r.writing.Lock()
		failed := first
		r.writing.Unlock()
		if failed != nil && !refused(failed) {
			break // the relay does not answer
		}
		names <- name
	}
	close(names)
	group.Wait()
	return first
}

// refused reports whether the relay, or the size of the slice, does not let one record be written.
func refused(err error) bool {
	return errors.Is(err, mailbox.ErrTooLarge) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// writeOne makes the record of a slice what the local cluster publishes.
func (r *relay) writeOne(ctx context.Context, client *client, name types.NamespacedName) error {
	slice := r.config.Local.PublishedSlice(r.book.source.Cluster, name)
	r.writing.Lock()
	has, exists := r.has.Get(name)
	r.writing.Unlock()
	if slice == nil {
		r.book.forget(name)
		if !exists {
			return nil
		}
		if err := client.delete(ctx, mailbox.RecordName(name)); err != nil {
			return err
		}
		r.writing.Lock()
		r.has.Delete(name)
		r.writing.Unlock()
		return nil
	}
	encoded, err := mailbox.Encode(slice)
	if err != nil {
		return err
	}
	digest := mailbox.Digest(sha256.Sum256(encoded))
	if exists && has.Digest == digest && r.book.adopt(name, has) {
		r.config.changed(name)
	}
	entry := r.book.entry(name, digest)
	if exists && has == entry {
		return nil
	}
	record, err := mailbox.ConfigMap(r.book.key, r.book.source, name, member.ServiceOf(slice).Name, entry.Counter, encoded)
	if err != nil {
		return err
	}
	if err := client.put(ctx, record, exists); err != nil {
		return err
	}
	r.writing.Lock()
	r.has.Put(name, entry)
	delete(r.foreign, record.Name)
	r.writing.Unlock()
	return nil
}
