// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// Names of a member's watches in its problems.
const (
	watchedSlices    = "EndpointSlices"
	watchedHeartbeat = "heartbeat"
)

// A Member is one other cluster of the set. It is safe for concurrent use; only one goroutine stores the slices read from it.
type Member struct {
	*limits.Store // the slices that it publishes

	set          *Members
	cluster      string
	registration atomic.Pointer[registration]
	leave        func()                     // stops reading it, and closes the store
	core         coreclient.CoreV1Interface // set before it is read

	mu              sync.RWMutex
	resourceVersion string           // of the heartbeat
	looked          time.Time        // when the heartbeat was last read
	problems        map[string]error // by watch
	reported        string           // the kind of the problem, empty for none
	back            chan struct{}    // has a value after the heartbeat could be read again
}

// Cluster returns the id of the member.
func (m *Member) Cluster() string { return m.cluster }

// Annotations returns the annotations of the member's Candidate. They are shared and must not be changed.
func (m *Member) Annotations() map[string]string { return m.Candidate().Annotations }

// Candidate returns the latest version of the candidate that makes the cluster a member.
func (m *Member) Candidate() *Candidate { return m.registration.Load().candidate }

// CIDRs restrict the member's endpoints. Without CIDRs all addresses are allowed, and the member is not probed.
func (m *Member) CIDRs() []netip.Prefix { return m.registration.Load().cidrs }

// Rank returns the rank of the member's exports in conflicts: see ParseRank. While the annotation is invalid it is the
// last valid rank, or LastRank.
func (m *Member) Rank() int { return m.registration.Load().rank }

// Accept returns the patterns of the services that the member may contribute, nil without the annotation. While the annotation
// is invalid they are the last valid patterns, or all services.
func (m *Member) Accept() *scope.Patterns { return m.registration.Load().accept }

// Life returns the validity of the member's credential as it is now. It may read a token file.
func (m *Member) Life() Life { return m.registration.Load().credential.Life() }

// Config returns the client configuration for the member, nil if its credential is not usable. It must not be changed.
func (m *Member) Config() *rest.Config { return m.registration.Load().credential.Config }

// Problem returns why requests to the member fail, nil if they succeed. Only the member's state shows a connection that hangs.
func (m *Member) Problem() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return errors.Join(m.problems[watchedSlices], m.problems[watchedHeartbeat])
}

// note records the outcome of a request for a watch, and reports the problem if its kind changed. The message may differ with
// each retry, the kind does not.
func (m *Member) note(ctx context.Context, watched string, err error) {
	if ctx.Err() != nil {
		return // canceled
	}
	if err != nil {
		if request := (*url.Error)(nil); errors.As(err, &request) {
			err = request.Err // without the long URL
		}
		err = fmt.Errorf("%s of cluster %s: %w", watched, m.cluster, err)
	}
	m.mu.Lock()
	if watched == watchedHeartbeat && err == nil && m.problems[watched] != nil {
		select {
		case m.back <- struct{}{}:
		default:
		}
	}
	m.problems[watched] = err
	problem, kind := errors.Join(m.problems[watchedSlices], m.problems[watchedHeartbeat]), ""
	if problem != nil {
		kind = "failed " + string(apierrors.ReasonForError(problem))
	}
	changed := kind != m.reported
	m.reported = kind
	m.mu.Unlock()
	if changed && problem != nil {
		m.set.config.Report(Problem{Candidate: m.Candidate(), Err: problem})
	}
}

// run reads the member until the context ends.
func (m *Member) run(ctx context.Context) {
	config := rest.CopyConfig(m.Config())
	config.Dial = m.set.config.Dial
	client, err := newHTTPClient(config)
	if err == nil {
		defer utilnet.CloseIdleConnectionsFor(client.Transport)
		err = m.connect(config, client)
	}
	if err != nil {
		m.set.config.Report(Problem{Candidate: m.Candidate(), Err: err, Refused: true})
		return
	}
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("member", m.cluster))
	var reading sync.WaitGroup
	reading.Go(func() { m.readSlices(ctx) })
	reading.Go(func() { m.readHeartbeats(ctx) })
	reading.Go(func() { m.renewToken(ctx) })
	reading.Wait()
}
