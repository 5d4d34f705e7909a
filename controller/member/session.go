// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterset-dns/clusterset-dns/controller/listwatch"
)

// A session is one watch of the heartbeat. It ends before an etcd is restored, because the API servers are stopped for
// that. Its fields are guarded by heartbeat.mu.
type session struct {
	opened time.Time
	over   bool // the watch ended
	// listed is the heartbeat of the list before the watch, and last the last one that the watch delivered.
	listed, last renewal
}

// renewalOf returns a heartbeat Lease as evidence.
func renewalOf(lease *coordinationv1.Lease) renewal {
	return renewal{versionOf(lease.ResourceVersion), HistoryOf(lease)}
}

// list notes a list of the reflector, before its watch.
func (h *heartbeat) list(objects []any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listed = renewal{}
	for _, object := range objects {
		if lease, ok := object.(*coordinationv1.Lease); ok {
			h.listed = renewalOf(lease)
		}
	}
}

// delivered notes an event of the watch.
func (h *heartbeat) delivered(object any) error {
	if lease, ok := object.(*coordinationv1.Lease); ok {
		h.mu.Lock()
		if h.session != nil {
			h.session.last = renewalOf(lease)
		}
		h.mu.Unlock()
	}
	return h.note(object)
}

// begin notes that a watch was opened.
func (h *heartbeat) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session = &session{opened: h.clock.Now(), listed: h.listed, last: h.listed}
	if h.began != nil {
		close(h.began)
		h.began = nil
	}
}

// end notes that the watch ended.
func (h *heartbeat) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session != nil {
		h.session.over = true
	}
}

// await waits for a session that did not end, but not for longer than a limit.
func (h *heartbeat) await(ctx context.Context, limit time.Duration) {
	h.mu.Lock()
	if h.session != nil && !h.session.over {
		h.mu.Unlock()
		return
	}
	if h.began == nil {
		h.began = make(chan struct{})
	}
	began := h.began
	h.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-began:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// current returns the last session, nil for none, and how long ago it began.
func (h *heartbeat) current() (*session, time.Duration) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.session == nil {
		return nil, 0
	}
	return h.session, h.clock.Since(h.session.opened)
}

// in returns the heartbeat of the list before a session, and the last one of the session.
func (h *heartbeat) in(s *session) (listed, last renewal) {
	if s == nil {
		return renewal{}, renewal{}
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	return s.listed, s.last
}

// sessions makes a reflector list the heartbeat before each watch.
type sessions struct {
	*heartbeat
	opened atomic.Bool
}

// Listing implements following.
func (s *sessions) Listing(context.Context) { s.opened.Store(false) }

// Open implements following.
func (s *sessions) Open(ctx context.Context, options metav1.ListOptions, open open) (watch.Interface, error) {
	if s.opened.Load() {
		return nil, listwatch.ErrBroken
	}
	w, err := open(ctx, options)
	if err == nil {
		s.opened.Store(true)
		s.begin()
	}
	return w, err
}
