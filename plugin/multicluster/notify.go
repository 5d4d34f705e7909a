// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
)

// notifier sends NOTIFY (RFC 1996) to the secondaries of a zone, and returns once they have answered or cannot be
// reached. The transfer plugin is one.
type notifier interface{ Notify(zone string) error }

// cadence limits how often the secondaries of a zone get NOTIFY: each one may cost a full transfer to each secondary.
type cadence struct {
	start  time.Duration // from the first sync to the first NOTIFY: the server must listen before a secondary asks it
	gather time.Duration // from a change to its NOTIFY, which covers all changes until then
	pause  time.Duration // after a NOTIFY, added to gather
}

var notifyCadence = cadence{start: 5 * time.Second, gather: time.Second, pause: 4 * time.Second}

// notifySecondaries sends NOTIFY for each zone after the first sync, and again when the serial of the SOA records has
// moved. The function that it returns ends this and calls stop. It does not wait for a NOTIFY that is being sent.
// Nothing runs without the transfer plugin, which is the handler.
func (m *Multicluster) notifySecondaries(handler plugin.Handler, synced <-chan struct{}, stop func()) func() {
	transfer, ok := handler.(notifier)
	if !ok {
		return stop
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := notifyCadence
	for _, zone := range slices.Concat(m.Zones, m.Reverse) { // a secondary of one zone does not delay those of another
		go c.notify(ctx, transfer, zone, synced, m.snapshot)
	}
	return func() {
		cancel()
		stop()
	}
}

// notify sends NOTIFY for one zone until the context ends. A failure is logged when it begins and when it ends.
func (c cadence) notify(
	ctx context.Context, transfer notifier, zone string, synced <-chan struct{}, snapshot func() *index.Snapshot,
) {
	if !await(ctx, synced) {
		return
	}
	failing := false
	for wait := c.start; await(ctx, time.After(wait)); wait = c.gather {
		outdated := snapshot().Outdated() // taken first: a change while NOTIFY is being sent needs another one
		err := transfer.Notify(zone)
		switch {
		case err != nil && !failing:
			log.Warningf("NOTIFY for zone %s failed, so secondaries may answer with old records until they refresh: "+
				"check the addresses after 'to', and that those secondaries accept NOTIFY from this server: %s",
				zone, strings.ReplaceAll(err.Error(), "\n", "; "))
		case err == nil && failing:
			log.Infof("All secondaries of zone %s accept NOTIFY again", zone)
		}
		failing = err != nil
		if !await(ctx, time.After(c.pause)) || !await(ctx, outdated) {
			return
		}
	}
}

// await reports whether the event came before the end of the context.
func await[T any](ctx context.Context, event <-chan T) bool {
	select {
	case <-ctx.Done():
		return false
	case <-event:
		return ctx.Err() == nil
	}
}
