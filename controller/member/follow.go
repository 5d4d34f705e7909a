// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/relay/inbox"
)

// silentFor is the silence after which the next path is read, two intervals: those of all paths together are to be less
// than --stale-after. It doubles with each round of all paths without a heartbeat, up to four times as long.
const (
	silentFor  = 2 * HeartbeatInterval
	slowerMost = 2
)

// hearing is what was heard of a member on all paths. Its successor with another credential shares it.
type hearing struct {
	sync.Mutex
	inbox.Heard
	// text is Heard as text, for readers that must not wait.
	text atomic.Pointer[string]
}

// note takes over what was heard into text. The caller holds the lock.
func (h *hearing) note() {
	text := h.String()
	h.text.Store(&text)
}

// Heard returns the highest counters that were heard of the member, and the time up to which it was read directly, as
// text: see RestoreHeard.
func (m *Member) Heard() string {
	var text string
	if noted := m.hearing.text.Load(); noted != nil {
		text = *noted
	}
	renewed, _ := m.heartbeat.renewal()
	if m.Path() != Direct || renewed.IsZero() {
		return text
	}
	heard, err := inbox.ParseHeard(text)
	if err != nil {
		return text
	}
	heard.Directly(renewed.UnixMilli(), m.keys()...)
	return heard.String()
}

// keys returns the ids of the member's keys.
func (m *Member) keys() (ids []string) {
	for _, signer := range *m.source.signers.Load() {
		ids = append(ids, signer.id)
	}
	return ids
}

// RestoreHeard restores what Heard returned to a former leader. What was heard meanwhile stays, unless it is older.
func (m *Member) RestoreHeard(text string) error {
	heard, err := inbox.ParseHeard(text)
	if err != nil || text == "" {
		return err
	}
	m.hearing.Lock()
	defer m.hearing.Unlock()
	m.hearing.Merge(heard)
	m.hearing.note()
	return nil
}

// Path returns the name of the path on which the member is read: Direct, or that of a relay. It is empty if there is
// none.
func (m *Member) Path() string {
	if p := m.current.Load(); p != nil {
		return p.name()
	}
	return ""
}

// Relayed reports whether the member may be read through relays.
func (m *Member) Relayed() bool { return len(*m.source.signers.Load()) > 0 }

// follow reads the member on one of its paths at a time until the context ends: the next one if no heartbeat arrives, or
// requests fail. With the direct path alone it reads that, whatever happens.
func (m *Member) follow(ctx context.Context, paths *paths) error {
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() { m.listen(ctx) })
	after, tries := "", 0
	for ctx.Err() == nil {
		all, changed := paths.get()
		if len(all) == 0 {
			m.current.Store(nil)
			m.note(watchedSlices, fmt.Errorf("there is no path to cluster %s: its credential has no kubeconfig, and "+
				"there is no Secret of a relay", m.cluster))
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		p := next(all, after)
		if before := m.current.Swap(&p); before != nil && before.name() != p.name() {
			klog.FromContext(ctx).Info("Reading the member on another path", "path", p.name(), "before", before.name())
		}
		m.moved()
		began := m.clock.Now()
		round, end := context.WithCancel(ctx)
		var watching sync.WaitGroup
		watching.Go(func() {
			defer end()
			m.stay(round, p, paths, began, silentFor<<min(slowerMost, tries/len(all)))
		})
		err := m.read(round, p)
		if err != nil && len(all) == 1 && p.relay == "" {
			end()
			watching.Wait()
			return err
		}
		if err != nil {
			m.note(watchedSlices, fmt.Errorf("cluster %s%s: %w", m.cluster, p.at(), err))
		}
		watching.Wait() // a path that cannot be read is left after a while, too
		end()
		if tries++; m.Heartbeat().Heard.After(began) {
			tries = 0
		}
		after = p.name()
		if now, _ := paths.get(); !has(now, p) {
			after = "" // the best one
		}
	}
	return nil
}

// read reads the member on a path until the context ends.
func (m *Member) read(ctx context.Context, p path) error {
	if p.relay != "" {
		return m.runRelayed(ctx, p)
	}
	defer func() {
		if renewed, age := m.heartbeat.renewal(); !renewed.IsZero() {
			m.hearing.Lock()
			m.hearing.Directly(renewed.Add(age).UnixMilli(), m.keys()...)
			m.hearing.note()
			m.hearing.Unlock()
		}
	}()
	credential := p.credential
	if dial := m.clients.dial; dial != nil {
		credential.Config = rest.CopyConfig(credential.Config)
		credential.Config.Dial = dial
	}
	return m.run(ctx, credential)
}

// stay returns once a path is to be left: it is not one of the paths anymore, or it is silent and another attempt may
// help.
func (m *Member) stay(ctx context.Context, p path, paths *paths, began time.Time, most time.Duration) {
	for {
		all, changed := paths.get()
		if !has(all, p) {
			return
		}
		var due <-chan time.Time
		var timer clock.Timer
		if len(all) > 1 || p.relay != "" {
			left := most - m.clock.Since(m.sign(began))
			if left <= 0 {
				return
			}
			timer = m.clock.NewTimer(left)
			due = timer.C()
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-due:
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// moved begins with another path: what another one delivered or failed to is no sign of it.
func (m *Member) moved() {
	m.heartbeat.moved()
	m.mu.Lock()
	m.failing = time.Time{}
	m.mu.Unlock()
}

// sign returns the time of the last sign that the path works: a heartbeat or a page of a list, but nothing since
// requests for slices fail.
func (m *Member) sign(began time.Time) time.Time {
	at := began
	for _, sign := range []time.Time{m.Heartbeat().Heard, time.Unix(0, m.progress.Load())} {
		if sign.After(at) {
			at = sign
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.failing.IsZero() && m.failing.Before(at) {
		return m.failing
	}
	return at
}

// endAfter calls end the delay after a signal is received, unless the context ends before.
func endAfter(ctx context.Context, end func(), received <-chan struct{}, delay func() time.Duration) {
	select {
	case <-ctx.Done():
		return
	case <-received:
	}
	timer := time.NewTimer(delay())
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
		end()
	}
}
