// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/packed"
	"github.com/clusterset-dns/clusterset-dns/controller/relay/inbox"
	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

type (
	slicesInbox   = inbox.Inbox[*discoveryv1.EndpointSlice, *coordinationv1.Lease]
	slicesRelease = inbox.Release[*discoveryv1.EndpointSlice, *coordinationv1.Lease]
	change        = inbox.Change[*discoveryv1.EndpointSlice]
	signedSlice   = inbox.Slice[*discoveryv1.EndpointSlice]
)

// relayed reads the mailbox of a member on a relay. What counts of it goes to the stores of the member, as from the
// member itself.
type relayed struct {
	*Member
	path   path
	source mailbox.Source
	// signals receives after each heartbeat that may count.
	signals chan struct{}

	// The fields below, and the stores, are guarded by Member.hearing.
	inbox *slicesInbox
	// listed is the last list, until it counts, and selection what noteSelection needs of it.
	listed    []*packed.Slice
	selection *export.Selection
	// last is the last heartbeat that was read, signed or not.
	last    inbox.Stamp
	refused error // of the last heartbeat
}

// runRelayed reads the member through a relay until the context ends.
func (m *Member) runRelayed(ctx context.Context, p path) error {
	httpClient, giveBack, err := m.clients.take(p.client, p.credential.Config, m.patience)
	if err != nil {
		return err
	}
	defer giveBack()
	config := rest.CopyConfig(p.credential.Config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	config.QPS = -1
	httpClient = &http.Client{CheckRedirect: httpClient.CheckRedirect, Transport: &frameLimiter{
		base: httpClient.Transport, event: maxOther + 2*m.slices.limits.SliceBytes, patience: m.patience,
	}}
	core, err := coreclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return err
	}
	coordination, err := coordinationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return err
	}
	r := &relayed{
		Member: m, path: p, source: mailbox.Source{Cluster: m.cluster, Set: m.set}, signals: make(chan struct{}, 1),
		inbox: inbox.New[*discoveryv1.EndpointSlice, *coordinationv1.Lease](&m.hearing.Heard),
	}
	m.hearing.Lock()
	m.hearing.Keep(func(key string) bool {
		return slices.ContainsFunc(p.signers, func(each signer) bool { return each.id == key })
	})
	m.hearing.note()
	m.hearing.Unlock()
	diagnose := r.diagnosis
	m.diagnose.Store(&diagnose)
	leases := coordination.Leases(p.credential.Namespace)
	failed := m.outcome(ctx, watchedHeartbeat, p.at())
	heartbeats := selected(leases, m.patience, &sessions{heartbeat: m.heartbeat},
		func(ctx context.Context, options metav1.ListOptions) (*coordinationv1.LeaseList, error) {
			return listOne(ctx, leases, options)
		}, func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, mailbox.HeartbeatLease).String()
		}, func(err error) {
			if err != nil {
				failed(err) // a success is noted once the heartbeat is verified
			}
		})
	var watches sync.WaitGroup
	watches.Go(func() {
		m.watch(ctx, watchedHeartbeat, heartbeats, &coordinationv1.Lease{}, heartbeatsAt{r}, nil, m.heartbeat.end)
	})
	watches.Go(func() { r.followMailbox(ctx, core.ConfigMaps(p.credential.Namespace)) })
	watches.Wait()
	return nil
}

// heartbeatsAt is the store of the heartbeat at a relay.
type heartbeatsAt struct{ *relayed }

var _ cache.ReflectorStore = heartbeatsAt{}

func (h heartbeatsAt) Add(object any) error    { return h.hear(object) }
func (h heartbeatsAt) Update(object any) error { return h.hear(object) }
func (h heartbeatsAt) Delete(any) error        { return nil }
func (h heartbeatsAt) Resync() error           { return nil }

func (h heartbeatsAt) Replace(objects []any, _ string) error {
	for _, object := range objects {
		if err := h.hear(object); err != nil {
			return err
		}
	}
	return nil
}

// hear takes a heartbeat, if the member has signed it.
func (r *relayed) hear(object any) error {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("unexpected object %T in a list of Leases", object)
	}
	var heartbeat *mailbox.Heartbeat
	key, err := r.verified(func(keys []ed25519.PublicKey) (err error) {
		heartbeat, err = mailbox.VerifyLease(keys, r.source, lease)
		return err
	})
	r.hearing.Lock()
	if r.refused = err; err == nil {
		r.last = inbox.Stamp{Key: key, Counter: heartbeat.Counter}
		r.apply(r.inbox.Heartbeat(inbox.Heartbeat[*coordinationv1.Lease]{
			Stamp: r.last, Root: heartbeat.Root, Content: heartbeat.Lease,
		}))
	}
	r.hearing.Unlock()
	if err != nil {
		err = fmt.Errorf("%s of cluster %s%s: %w", watchedHeartbeat, r.cluster, r.path.at(), err)
	}
	r.note(watchedHeartbeat, err)
	select {
	case r.signals <- struct{}{}:
	default: // a signal already pending covers this heartbeat
	}
	return nil
}

// verified calls verify with each key of the member alone, and returns the id of the one that signed.
func (r *relayed) verified(verify func([]ed25519.PublicKey) error) (key string, err error) {
	for _, signer := range r.path.signers {
		if err = verify([]ed25519.PublicKey{signer.key}); !errors.Is(err, mailbox.ErrSignature) {
			return signer.id, err
		}
	}
	if errors.Is(err, mailbox.ErrSignature) {
		err = fmt.Errorf("%w: compare %s in the Secret with the signing key of that cluster", err, mailbox.PublicKeysKey)
	}
	return "", err
}

// slice returns the slice of a record, if the member has signed it. One that cannot be decoded has no content: it harms
// no other, and what is known of it stays.
func (r *relayed) slice(ctx context.Context, record *corev1.ConfigMap) (signedSlice, error) {
	var of *mailbox.Slice
	key, err := r.verified(func(keys []ed25519.PublicKey) (err error) {
		of, err = mailbox.Verify(keys, r.source, record)
		return err
	})
	if err != nil {
		return signedSlice{}, err
	}
	slice := signedSlice{Name: of.Name, Entry: of.Entry, Key: key}
	if err = checkSlice(of.Encoded); err == nil {
		slice.Content, err = of.Decode(r.source)
	}
	if err != nil {
		slice.Content = nil
		r.refuse(ctx, record, err)
		return slice, nil
	}
	slice.Content.ResourceVersion = fmt.Sprint(of.Counter)
	return slice, nil
}

// apply gives what counts to the stores of the member. The caller holds the lock.
func (r *relayed) apply(release slicesRelease) {
	if release.Heartbeat != nil {
		_ = r.heartbeat.note(release.Heartbeat.Content) // it is a Lease
	}
	changes := release.Changes
	changes = slices.DeleteFunc(changes, func(each change) bool { return !each.Deleted && each.Content == nil })
	if release.Listed {
		changed := map[types.NamespacedName]bool{}
		for _, change := range changes {
			changed[change.Name] = true
		}
		var objects []any
		for _, slice := range r.listed {
			if !changed[nameOf(slice.OpenMetadata())] {
				objects = append(objects, slice)
			}
		}
		for _, change := range changes {
			if !change.Deleted && ServiceOf(change.Content).Name != "" {
				fitting, _ := r.slices.limits.Fitting(change.Content)
				objects = append(objects, packed.New(fitting))
			}
		}
		r.slices.noteSelection(r.selection)
		_ = r.slices.Replace(objects, "") // they are slices
		r.listed, r.selection, changes = nil, nil, nil
	}
	for _, change := range changes {
		if change.Deleted {
			r.slices.gone(change.Name)
		} else {
			_ = r.slices.Update(change.Content) // it is a slice
		}
	}
	if release.Heartbeat != nil || len(changes) > 0 {
		r.hearing.note()
	}
}

// diagnosis returns why no heartbeat of the relay counts.
func (r *relayed) diagnosis() string {
	r.hearing.Lock()
	defer r.hearing.Unlock()
	switch {
	case r.refused != nil:
		return r.refused.Error()
	case r.last == (inbox.Stamp{}):
		return "the relay is unreachable or hangs, or that cluster does not publish to it"
	case !r.hearing.Latest(r.last):
		return "the relay is behind: it shows a heartbeat that is older than the last one, which was read elsewhere"
	case r.inbox.Waits():
		return "the heartbeat does not vouch for the slices that the relay shows: it withholds some, or is behind"
	}
	return "that cluster does not reach the relay, or its controller does not run"
}
