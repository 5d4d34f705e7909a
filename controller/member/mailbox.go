// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/listwatch"
	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

// mailboxWatch is the time after which a watch of a mailbox is opened again: as long as that of a reflector, and up to
// as much again.
const mailboxWatch = 5 * time.Minute

// maxSaid bounds the text of a relay in an error, in characters.
const maxSaid = 1024

// records is the ConfigMaps of a mailbox, which coreclient.ConfigMapInterface implements.
type records = listwatch.Client[*corev1.ConfigMapList]

var _ records = coreclient.ConfigMapInterface(nil)

// followMailbox lists and watches the slices of a mailbox until the context ends. After a watch that broke, it lists again.
func (r *relayed) followMailbox(ctx context.Context, records records) {
	fresh := func() func() time.Duration { return retry.DelayWithReset(clock.RealClock{}, retryReset) }
	delay := fresh()
	for ctx.Err() == nil {
		began := time.Now()
		round, end := context.WithCancel(ctx)
		var waiting sync.WaitGroup
		waiting.Go(func() { endAfter(round, end, r.slices.relist, r.slices.relistDelay) })
		if err := r.listAndWatch(round, records); err != nil {
			klog.FromContext(ctx).V(4).Info("Retrying member", "watched", watchedSlices, "relay", r.path.relay, "err", err)
		}
		end()
		waiting.Wait()
		r.abandon()
		if time.Since(began) > lasting {
			delay = fresh()
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay()):
		}
	}
}

// abandon drops a list that did not count.
func (r *relayed) abandon() {
	r.hearing.Lock()
	defer r.hearing.Unlock()
	r.inbox.End()
	if r.selection != nil {
		r.listed, r.selection = nil, nil
		r.slices.account.abandon()
	}
}

// due waits for a heartbeat that can vouch for a list. Before that, a list of a member that was listed before is for
// nothing: the relay is behind, or the member is dead.
func (r *relayed) due(ctx context.Context) error {
	for {
		r.hearing.Lock()
		due := r.last.Counter > 0 && r.hearing.Latest(r.last) && (!r.Synced() || r.hearing.Later(r.last))
		r.hearing.Unlock()
		if due {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.signals:
		}
	}
}

func (r *relayed) listAndWatch(ctx context.Context, records records) error {
	if err := r.due(ctx); err != nil {
		return err
	}
	outcome := r.outcome(ctx, watchedSlices, r.path.at())
	version, names, err := r.list(ctx, records)
	outcome(err)
	if err != nil {
		return err
	}
	for {
		// Half of it at least: all members of a relay are not to be watched anew at once.
		timeout := mailboxWatch + rand.N(mailboxWatch) //nolint:gosec // no secret
		begun := time.Now()
		w, err := records.Watch(ctx, metav1.ListOptions{
			LabelSelector: mailbox.Selector(r.source), ResourceVersion: version, AllowWatchBookmarks: true,
			TimeoutSeconds: ptr.To(int64(timeout / time.Second)),
		})
		outcome(err)
		if err != nil {
			return err
		}
		err = r.pass(ctx, w, &version, names)
		w.Stop()
		if err != nil || time.Since(begun) < timeout-time.Second {
			return errors.Join(err, listwatch.ErrBroken)
		}
	}
}

// most is how many slices a mailbox may have: those beyond the limits of a member are known by their names, too.
func (r *relayed) most() int {
	limits := r.slices.limits
	return limits.Services + limits.Endpoints
}

// list lists the mailbox. It returns the resourceVersion, and the names of slices by those of their records.
func (r *relayed) list(ctx context.Context, records records) (string, map[string]types.NamespacedName, error) {
	store := r.slices
	selection := export.NewSelection(store.limits, store.imported(), store.account.claim)
	keep := false
	defer func() {
		if !keep {
			store.account.abandon()
		}
	}()
	seconds := int64(r.patience/time.Second) + 1
	options := metav1.ListOptions{LabelSelector: mailbox.Selector(r.source), Limit: pageSize, TimeoutSeconds: &seconds}
	names := map[string]types.NamespacedName{}
	var all []signedSlice
	page, fitting, shown := turn{of: store.turns}, 0, 0
	defer page.end()
	for {
		list, err := records.List(page.with(ctx), options)
		if errors.Is(err, errTooLarge) && options.Limit > 1 {
			page.end()
			options.Limit /= 2
			fitting = 0
			continue
		}
		if err != nil {
			return "", nil, err
		}
		progress := false
		for i := range list.Items {
			slice, err := r.slice(ctx, &list.Items[i])
			if err != nil {
				r.refuse(ctx, &list.Items[i], err)
				continue
			}
			offered := slice.Content
			if offered == nil { // it cannot be decoded: what is known of it stays
				offered = store.slice(slice.Name.Namespace, slice.Name.Name)
			}
			if offered != nil && ServiceOf(offered).Name != "" {
				fitting, _ := store.limits.Fitting(offered)
				selection.Offer(ServiceOf(fitting), fitting)
			}
			slice.Content = nil
			if _, known := names[list.Items[i].Name]; !known {
				progress = true
			}
			names[list.Items[i].Name] = slice.Name
			all = append(all, slice)
		}
		if progress { // what the member did not sign, or what was shown before, is no sign that the path works
			r.progress.Store(r.clock.Now().UnixNano())
		}
		if shown += len(list.Items); shown > r.most() {
			return "", nil, fmt.Errorf("the mailbox has more than %d records", r.most())
		}
		if options.Continue = list.Continue; options.Continue == "" {
			options.ResourceVersion = list.ResourceVersion
			break
		}
		page.end()
		if fitting++; fitting == pagesToGrow {
			options.Limit, fitting = min(2*options.Limit, pageSize), 0
		}
	}
	page.end()
	r.hearing.Lock()
	defer r.hearing.Unlock()
	keep = true
	r.listed, r.selection = selection.Slices(), selection
	r.apply(r.inbox.Begin(all))
	return options.ResourceVersion, names, nil
}

// refuse logs a record that the member did not sign, or that cannot be read. It counts as missing.
func (r *relayed) refuse(ctx context.Context, record *corev1.ConfigMap, err error) {
	klog.FromContext(ctx).V(2).Info("Ignoring a record in the mailbox of a member", "relay", r.path.relay,
		"configMap", klog.KObj(record), "err", err)
}

// pass takes the events of a watch until it ends. names are those of slices by those of their records.
func (r *relayed) pass(ctx context.Context, w watch.Interface, version *string,
	names map[string]types.NamespacedName,
) error {
	for {
		var event watch.Event
		var open bool
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open = <-w.ResultChan():
		}
		if !open {
			return nil
		}
		record, ok := event.Object.(*corev1.ConfigMap)
		if !ok || event.Type == watch.Error {
			return fmt.Errorf("the watch ended: %.*v", maxSaid, apierrors.FromObject(event.Object))
		}
		*version = record.ResourceVersion
		if event.Type == watch.Bookmark {
			continue
		}
		if err := r.take(ctx, event.Type, record, names); err != nil {
			return err
		}
	}
}

// take takes one event.
func (r *relayed) take(ctx context.Context, kind watch.EventType, record *corev1.ConfigMap,
	names map[string]types.NamespacedName,
) error {
	var slice signedSlice
	shown := kind != watch.Deleted
	if shown {
		var err error
		if slice, err = r.slice(ctx, record); err != nil {
			r.refuse(ctx, record, err)
			shown = false // of what it replaced nothing is shown, either
		}
	}
	r.hearing.Lock()
	defer r.hearing.Unlock()
	if !shown {
		if name, known := names[record.Name]; known {
			delete(names, record.Name)
			r.apply(r.inbox.Delete(name))
		}
		return nil
	}
	if !r.inbox.Has(slice.Name) && r.inbox.Len() >= r.most() {
		return fmt.Errorf("the mailbox has more than %d slices", r.most())
	}
	names[record.Name] = slice.Name
	r.apply(r.inbox.Put(slice))
	return nil
}
