// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// listsAtOnce bounds the pages of lists that are read and decoded at once: each takes a multiple of maxAnswer in memory, and
// all members are listed at the start.
const listsAtOnce = 8

// connect makes the member's client from config and client, and modifies both.
func (m *Member) connect(config *rest.Config, client *http.Client) (err error) {
	client.Transport = bounded{client.Transport}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	config.QPS = -1 // the member's own priority and fairness is the limit
	config.WarningHandlerWithContext = rest.NoWarnings{}
	m.core, err = coreclient.NewForConfigAndClient(config, client)
	return err
}

// slicesRequest returns a request for the EndpointSlices that the member publishes.
func (m *Member) slicesRequest(options metav1.ListOptions) *rest.Request {
	options.LabelSelector = v1beta1.LabelSourceCluster + "=" + m.cluster
	return m.core.RESTClient().Get().AbsPath("apis/discovery.k8s.io/v1").Resource("endpointslices").
		VersionedParams(&options, scheme.ParameterCodec)
}

// heartbeatRequest returns a request for the heartbeat alone.
func (m *Member) heartbeatRequest(options metav1.ListOptions) *rest.Request {
	options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, HeartbeatLease).String()
	return m.core.RESTClient().Get().AbsPath("apis/coordination.k8s.io/v1").Namespace(m.registration.Load().credential.Namespace).
		Resource("leases").VersionedParams(&options, scheme.ParameterCodec)
}

// receive decodes the body of an answer.
func receive(body io.ReadCloser, into object) error {
	whole, err := read(body, maxAnswer)
	if err != nil {
		return err
	}
	return decode(whole, into)
}

// page reads a page of a list of slices, and calls take with it. At most listsAtOnce pages of all members are in memory at
// once. A page waits for its turn only after its response has begun, so a server that does not answer blocks no other member. A
// slow server blocks them for at most pageWithin.
func (m *Member) page(ctx context.Context, options metav1.ListOptions, take func(*discoveryv1.EndpointSliceList)) error {
	body, err := m.slicesRequest(options).Stream(ctx)
	if err != nil {
		return err
	}
	select {
	case m.set.turns <- struct{}{}:
		defer func() { <-m.set.turns }()
	case <-ctx.Done():
		body.Close()
		return context.Cause(ctx)
	}
	page := &discoveryv1.EndpointSliceList{}
	if err := receive(body, page); err != nil {
		return err
	}
	take(page)
	return nil
}

// readHeartbeat reads the heartbeat now, not from a cache, and returns its KubeSystemUID, empty if there is none, and the
// current resourceVersion of the member's etcd.
func (m *Member) readHeartbeat(ctx context.Context) (version, uid string, err error) {
	list := &coordinationv1.LeaseList{}
	body, err := m.heartbeatRequest(metav1.ListOptions{Limit: pageSize}).Stream(ctx)
	if err == nil {
		err = receive(body, list)
	}
	if err != nil {
		return "", "", err
	}
	if len(list.Items) > 0 { // the request is for one Lease: only a hostile member lists more
		m.hear(&list.Items[0], true)
		uid = uidOf(&list.Items[0])
	}
	return list.ResourceVersion, uid, nil
}

// watchFrom calls put or remove for each change after a version, until the watch or the context ends.
func watchFrom[T any, P interface {
	*T
	object
}](
	ctx context.Context, m *Member, watched string, request func(metav1.ListOptions) *rest.Request, version string,
	put, remove func(P),
) error {
	seconds := 300 + rand.Int64N(300) // so that the watches of all members do not end at once
	body, err := request(metav1.ListOptions{
		Watch: true, AllowWatchBookmarks: true, ResourceVersion: version, TimeoutSeconds: &seconds,
	}).Stream(ctx)
	if m.note(ctx, watched, err); err != nil {
		return err
	}
	defer body.Close()
	// A proxy may have lost the watch, so that nothing arrives any more, not even its end.
	lost := time.AfterFunc(silence, func() { body.Close() })
	defer lost.Stop()
	// SliceBytes does not count the fields that export.Strip removes, such as managedFields.
	return events(body, maxOther+2*m.Limits().SliceBytes, func(event metav1.WatchEvent) error {
		lost.Reset(silence)
		if event.Type == string(watch.Error) {
			status := &metav1.Status{}
			if err := decode(event.Object.Raw, status); err != nil {
				return err
			}
			return apierrors.FromObject(status)
		}
		object := P(new(T))
		if err := decode(event.Object.Raw, object); err != nil {
			return err
		}
		switch watch.EventType(event.Type) {
		case watch.Added, watch.Modified:
			put(object)
		case watch.Deleted:
			remove(object)
		}
		return nil
	})
}

// follow lists and watches objects again and again until the context ends: soon after a watch that lasted, otherwise with
// backoff. It lists before each watch, because a restored etcd sends nothing to a watch from a resourceVersion that it has not
// reached yet, and because the address may lead to another cluster now. A value from early ends a wait.
func (m *Member) follow(ctx context.Context, watched string, early <-chan struct{},
	list func() (version string, err error), watch func(version string) error,
) {
	for delay := retry.DelayFunc(); ctx.Err() == nil; {
		version, err := list()
		m.note(ctx, watched, err)
		if began := time.Now(); err == nil {
			if err = watch(version); time.Since(began) > lasting {
				delay = retry.DelayFunc()
			}
		}
		if err != nil {
			klog.FromContext(ctx).V(4).Info("Retrying member", "watched", watched, "err", err)
		}
		select {
		case <-ctx.Done():
		case <-early:
		case <-time.After(delay()):
		}
	}
}

// readHeartbeats lists the heartbeat and watches it.
func (m *Member) readHeartbeats(ctx context.Context) {
	renewed := func(lease *coordinationv1.Lease) {
		m.hear(lease, false)
		select {
		case <-ctx.Done():
		case <-time.After(heartbeatPause):
		}
	}
	ignore := func(*coordinationv1.Lease) {} // after a deletion the Tracker notices the missing heartbeats
	m.follow(ctx, watchedHeartbeat, nil, func() (string, error) {
		version, _, err := m.readHeartbeat(ctx)
		return version, err
	}, func(version string) error {
		return watchFrom(ctx, m, watchedHeartbeat, m.heartbeatRequest, version, renewed, ignore)
	})
}

// readSlices lists the slices and watches them.
func (m *Member) readSlices(ctx context.Context) {
	m.follow(ctx, watchedSlices, m.back, func() (string, error) {
		return m.listSlices(ctx)
	}, func(version string) error {
		return watchFrom(ctx, m, watchedSlices, m.slicesRequest, version, m.putSlice, m.removeSlice)
	})
}

// pageSize is the number of objects in a page of a list. It is halved after a page that is too large or too slow, and doubled
// again after pagesToGrow pages that fit: the list must end before etcd compacts its revision.
const pageSize, pagesToGrow = 100, 8

// listSlices lists the slices of a member in pages, and stores those that the limits allow. Only these and one page are in memory.
// The list may come from another cluster than the last heartbeat, so the heartbeat is read again before the list becomes
// visible.
func (m *Member) listSlices(ctx context.Context) (version string, err error) {
	selection := m.BeginList(m.set.config.Local.Imported(m.cluster))
	options, fitting := metav1.ListOptions{Limit: pageSize}, 0
	take := func(page *discoveryv1.EndpointSliceList) {
		for i := range page.Items {
			selection.Offer(export.Strip(&page.Items[i]))
		}
		version, options.Continue = page.ResourceVersion, page.Continue
	}
	for {
		err := m.page(ctx, options, take)
		switch {
		case (errors.Is(err, errTooLarge) || errors.Is(err, errLate)) && options.Limit > 1:
			options.Limit, fitting = options.Limit/2, 0
			continue
		case errors.Is(err, errTooLarge):
			// The object cannot be skipped: the unreadable response has the token of the next page.
			return "", fmt.Errorf("one EndpointSlice is larger than any API server keeps, and no change of any other is seen while it is there: %w", errTooLarge)
		case err != nil:
			return "", err
		}
		if options.Continue == "" {
			break
		}
		if fitting++; fitting == pagesToGrow {
			options.Limit, fitting = min(2*options.Limit, pageSize), 0
		}
	}
	_, uid, err := m.readHeartbeat(ctx)
	if err != nil {
		return "", fmt.Errorf("read the heartbeat after the slices: %w", err)
	}
	m.replace(ctx, selection, uid)
	return version, nil
}
