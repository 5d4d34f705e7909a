// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// What both ends of a heartbeat know of each other (docs/design/heartbeat.md).
const (
	// HeartbeatLease is the name of the Lease that a cluster's leading controller renews in its own namespace.
	HeartbeatLease = "clusterset-dns-heartbeat"
	// HeartbeatUIDAnnotation carries the UID of the namespace kube-system: another one under the same id is another
	// cluster.
	HeartbeatUIDAnnotation = "clusterset-dns.github.io/kube-system-uid"
	// HeartbeatVersionAnnotation carries the version of the controller.
	HeartbeatVersionAnnotation = "clusterset-dns.github.io/version"
	// HeartbeatInterval is the time between two renewals.
	HeartbeatInterval = 5 * time.Second
	// reportAfter is the silence after which a member counts as unreachable, which is
	// reported and demotes nothing: that is liveness.Limits.
	reportAfter = 3 * HeartbeatInterval
)

// A Heartbeat is the last sign of life of a member.
type Heartbeat struct {
	// Heard is the local time at which the heartbeat last changed; zero where none was ever heard.
	Heard time.Time
	// KubeSystemUID is that of the member's namespace kube-system, as its controller wrote it.
	KubeSystemUID string
	// Cluster is what the member calls itself.
	Cluster string
}

// A leaseHandler handles heartbeat Leases.
type leaseHandler interface {
	// leaseRead is called for every Lease that is read, with the ids in it. renewed reports whether the Lease was
	// renewed since it was last read, and identified whether it has other ids.
	leaseRead(uid, holder string, at time.Time, renewed, identified bool)
}

// heartbeat notes when the Lease that a reflector delivers changes.
type heartbeat struct {
	clock   clock.PassiveClock
	handler leaseHandler // optional
	// arrived, of size one, receives after each renewal.
	arrived chan struct{}

	mu              sync.RWMutex
	last            Heartbeat
	resourceVersion string
}

var _ cache.ReflectorStore = (*heartbeat)(nil)

func (h *heartbeat) get() Heartbeat {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.last
}

func (h *heartbeat) Add(obj any) error    { return h.note(obj) }
func (h *heartbeat) Update(obj any) error { return h.note(obj) }

// Delete does nothing: a Lease that is gone is silence, and time tells it.
func (h *heartbeat) Delete(any) error { return nil }

func (h *heartbeat) Replace(objects []any, _ string) error {
	for _, object := range objects {
		if err := h.note(object); err != nil {
			return err
		}
	}
	return nil
}

func (h *heartbeat) Resync() error { return nil }

// note takes another resourceVersion for a renewal. The first Lease may have been written long ago.
func (h *heartbeat) note(obj any) error {
	lease, ok := obj.(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("unexpected object %T in a list of Leases", obj)
	}
	now, uid := h.clock.Now(), shorten(lease.Annotations[HeartbeatUIDAnnotation])
	cluster := shorten(ptr.Deref(lease.Spec.HolderIdentity, ""))
	h.mu.Lock()
	identified := h.resourceVersion == "" || h.last.KubeSystemUID != uid || h.last.Cluster != cluster
	first, changed := h.resourceVersion == "", lease.ResourceVersion != h.resourceVersion
	if changed {
		h.resourceVersion = lease.ResourceVersion
		h.last = Heartbeat{Heard: now, KubeSystemUID: uid, Cluster: cluster}
	}
	h.mu.Unlock()
	if changed {
		select {
		case h.arrived <- struct{}{}:
		default: // a signal already pending covers this renewal
		}
	}
	if h.handler != nil {
		h.handler.leaseRead(uid, cluster, now, changed && !first, identified)
	}
	return nil
}

// maxWord bounds what is kept of a text that should be an id, in bytes.
const maxWord = 128

func shorten(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxWord)], "") }

// listen notes when the heartbeat falls silent and when it is heard again, until the context ends. A watch that hangs
// does not fail, and client-go takes some failures for a watch that ended, so that requests do not tell.
func (m *Member) listen(ctx context.Context) {
	joined, silent := m.clock.Now(), false
	for {
		from := m.Heartbeat().Heard
		if from.IsZero() {
			from = joined
		}
		left := reportAfter - m.clock.Since(from)
		if silent != (left <= 0) {
			silent = !silent
			var err error
			if silent {
				err = fmt.Errorf("no heartbeat of cluster %s for %s: its API server hangs, the way there is cut, or its controller does not run", m.cluster, reportAfter)
			}
			m.note(watchedArrival, err)
		}
		var due <-chan time.Time
		var timer clock.Timer
		if !silent {
			timer = m.clock.NewTimer(left)
			due = timer.C()
		}
		select {
		case <-ctx.Done():
		case <-due:
		case <-m.heartbeat.arrived:
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return
		}
	}
}
