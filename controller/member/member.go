// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// The watches of a member, in its problems.
const (
	watchedSlices    = "EndpointSlices"
	watchedHeartbeat = "heartbeat"
)

// A Member is one other cluster of the set. It is safe for concurrent use.
type Member struct {
	// sliceStore has what the member publishes.
	*sliceStore
	cluster   string
	clock     clock.WithTicker
	heartbeat *heartbeat
	report    func(Problem) // its Candidate is that of the member
	source    atomic.Pointer[source]
	keep      func(context.Context, *corev1.Secret) error // see Config.Keep
	read      func()                                      // reads the member until it leaves
	leave     func()                                      // ends read, and closes the account
	// listed is the KubeSystemUID of the cluster whose slices were listed last, nil if the list may be incomplete.
	listed atomic.Pointer[string]

	mu       sync.Mutex
	problems map[string]error // by watch
	reported string           // the kind of the problem, empty for none
}

// Cluster returns the id of the member.
func (m *Member) Cluster() string { return m.cluster }

// Annotations returns the annotations of what makes the cluster a member. They are shared and must not be changed.
func (m *Member) Annotations() map[string]string { return m.Candidate().Annotations }

// Candidate returns what makes the cluster a member, in its latest version.
func (m *Member) Candidate() *Candidate { return m.source.Load().candidate }

// CIDRs restrict the addresses of the member's endpoints. Without CIDRs all are allowed, and none is probed.
func (m *Member) CIDRs() []netip.Prefix { return m.source.Load().cidrs }

// Rank returns the rank of the member's exports in conflicts: see ParseRank. While the annotation is invalid it is the
// last valid rank, or LastRank.
func (m *Member) Rank() int { return m.source.Load().rank }

// Accept returns the patterns of the services that the member may contribute, nil if it has none of its own. While the
// annotation is invalid they are the last valid ones.
func (m *Member) Accept() *scope.Patterns { return m.source.Load().accept }

// Life returns the validity of the member's credential as it is now. It may read files.
func (m *Member) Life() Life { return m.source.Load().credential.Life() }

// Heartbeat returns the last sign of life of the member.
func (m *Member) Heartbeat() Heartbeat { return m.heartbeat.get() }

// Config returns how the member is reached, nil if its credential is not usable. It must not be changed.
func (m *Member) Config() *rest.Config { return m.source.Load().credential.Config }

// Problem returns why requests to the member fail, nil if they do not. A connection that hangs shows in its state alone.
func (m *Member) Problem() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.problem()
}

func (m *Member) problem() error {
	return errors.Join(m.problems[watchedSlices], m.problems[watchedHeartbeat])
}

// note records the outcome of a request of a watch, and reports the problem if its kind changed. Messages may differ
// with each retry; kinds do not.
func (m *Member) note(watched string, err error) {
	m.mu.Lock()
	m.problems[watched] = err
	problem := m.problem()
	kind := ""
	if first := cmp.Or(m.problems[watchedSlices], m.problems[watchedHeartbeat]); first != nil {
		kind = "failed " + string(apierrors.ReasonForError(first))
	}
	changed := kind != m.reported
	m.reported = kind
	m.mu.Unlock()
	if changed && problem != nil {
		m.report(Problem{Err: problem})
	}
}

// run reads the member until the context ends.
func (m *Member) run(ctx context.Context, credential Credential) error {
	httpClient, closeConnections, err := newHTTPClient(credential.Config)
	if err != nil {
		return err
	}
	// Published slices have managed fields and others, which the limit does not count.
	httpClient.Transport = &frameLimiter{base: httpClient.Transport, event: maxOther + 2*m.account.Limits().SliceBytes}
	config := rest.CopyConfig(credential.Config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	config.QPS = -1 // the member's own priority and fairness is the limit
	discovery, err := discoveryclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return err
	}
	coordination, err := coordinationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return err
	}
	core, err := coreclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return err
	}
	slices, leases := discovery.EndpointSlices(metav1.NamespaceAll), coordination.Leases(credential.Namespace)
	lease := selected(leases, heartbeatOnly,
		func(ctx context.Context) (version string, err error) {
			version, _, err = m.readHeartbeat(ctx, leases)
			return version, err
		},
		// A restored etcd sends nothing to a watch from a resourceVersion that it has not reached yet.
		func(context.Context, string) error { return errRestored },
		m.outcome(watchedHeartbeat))
	only := metav1.ListOptions{LabelSelector: v1beta1.LabelSourceCluster + "=" + m.cluster}
	published := selected(slices, only,
		func(ctx context.Context) (string, error) {
			return m.list(ctx, slices, paged(only), func() (uid string, err error) {
				// The list may be of another cluster than the last heartbeat, which is read before the list is visible.
				if _, uid, err = m.readHeartbeat(ctx, leases); err != nil {
					err = fmt.Errorf("read the heartbeat after the slices: %w", err)
				}
				return uid, err
			})
		},
		func(ctx context.Context, version string) error { return m.unchanged(ctx, leases, version) },
		m.outcome(watchedSlices))

	var watches sync.WaitGroup
	watches.Go(func() {
		m.watch(ctx, watchedSlices, published, &discoveryv1.EndpointSlice{}, events[*discoveryv1.EndpointSlice]{m.put, m.remove})
	})
	watches.Go(func() {
		silence := func(*coordinationv1.Lease) {} // of a deleted one: the Tracker notices
		m.watch(ctx, watchedHeartbeat, lease, &coordinationv1.Lease{}, events[*coordinationv1.Lease]{m.heartbeat.note, silence})
	})
	watches.Go(func() { m.makeRoom(ctx, published.expire) })
	watches.Go(func() { m.renewToken(ctx, core.ServiceAccounts(credential.Namespace), credential) })
	watches.Wait()
	closeConnections()
	return nil
}

// heartbeatOnly selects the heartbeat.
var heartbeatOnly = metav1.ListOptions{
	FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, HeartbeatLease).String(),
}

// readHeartbeat reads the heartbeat now, not from a cache, and returns its KubeSystemUID, empty if there is none, and the
// current resourceVersion of the member's etcd.
func (m *Member) readHeartbeat(ctx context.Context, leases informer.Client[*coordinationv1.LeaseList]) (
	version, uid string, err error,
) {
	list, err := leases.List(ctx, paged(heartbeatOnly))
	if err != nil {
		return "", "", err
	}
	for i := range list.Items {
		m.heartbeat.note(&list.Items[i])
		uid = uidOf(&list.Items[i])
	}
	return list.ResourceVersion, uid, nil
}

// unchanged returns an error if slices must be listed before they are watched again from a resourceVersion: the etcd was
// restored from a backup, it is that of another cluster, or the last list may be incomplete. While the API server is
// away, its etcd may be restored and go further than before.
func (m *Member) unchanged(ctx context.Context, leases informer.Client[*coordinationv1.LeaseList], from string) error {
	listed := m.listed.Load()
	if listed == nil {
		return errRestored
	}
	version, uid, err := m.readHeartbeat(ctx, leases)
	if err != nil {
		return errRestored // the list reports the error
	}
	order, err := resourceversion.CompareResourceVersion(version, from)
	if err != nil || order < 0 || *listed != "" && uid != *listed {
		return errRestored
	}
	m.listed.Store(&uid) // the member's first heartbeat may be younger than the list
	return nil
}

// outcome records the outcome of a request.
func (m *Member) outcome(watched string) func(error) {
	return func(err error) {
		if err != nil {
			if request := (*url.Error)(nil); errors.As(err, &request) {
				err = request.Err // without the long URL
			}
			err = fmt.Errorf("%s of cluster %s: %w", watched, m.cluster, err)
		}
		m.note(watched, err)
	}
}

// watch fills the store until the context ends. Unlike the reflector's own loop it does not log each failure, which outcome
// reports.
func (m *Member) watch(ctx context.Context, name string, from *listWatch, kind any, store cache.ReflectorStore) {
	backoff := retry
	logger := klog.FromContext(ctx)
	reflector := cache.NewReflectorWithOptions(from, kind, store, cache.ReflectorOptions{
		Logger:  &logger,
		Name:    m.cluster + " " + name,
		Backoff: &backoff,
	})
	delay := retry.DelayFunc()
	for ctx.Err() == nil {
		began := time.Now()
		if err := reflector.ListAndWatchWithContext(ctx); err != nil {
			logger.V(4).Info("Retrying member", "watched", name, "err", err)
		}
		if from.watched.Load() != nil && time.Since(began) > lasting {
			delay = retry.DelayFunc()
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay()):
		}
	}
}

// makeRoom has the slices listed again, some time after there may be room for what was left out, until the context ends.
func (m *Member) makeRoom(ctx context.Context, expire func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.account.Relist():
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(m.account.RelistDelay()):
			expire()
		}
	}
}
