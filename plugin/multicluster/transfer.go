// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/transfer"
	"github.com/miekg/dns"
	"golang.org/x/time/rate"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// Transfer implements transfer.Transferer. It sends a snapshot, so all records are of one moment. It answers IXFR with all
// records or, if the client's serial is not older than the current one, with the SOA record alone (RFC 1995, section 2).
func (m *Multicluster) Transfer(zone string, serial uint32) (<-chan []dns.RR, error) {
	number := slices.Index(m.config.Zones, strings.ToLower(zone))
	if number < 0 {
		return nil, transfer.ErrNotAuthoritative
	}
	active := m.active()
	number = slices.Index(active.config.Zones, strings.ToLower(zone))
	if number < 0 || active.state() == nil {
		return nil, errors.New("the zone cannot be transferred before all its objects were listed")
	}
	state, all := active.index.Load().Snapshot(number)
	records := make(chan []dns.RR)
	go func() {
		defer close(records)
		records <- state.SOA(number)
		if serial != 0 && int32(state.Serial-serial) <= 0 {
			return
		}
		records <- active.apexes[number].Records()
		for some := range all {
			records <- some
		}
		records <- state.SOA(number)
	}()
	return records, nil
}

// notifier sends NOTIFY (RFC 1996) to the secondaries of a zone. It returns once they have answered or are unreachable.
// The transfer plugin implements it.
type notifier interface{ Notify(zone string) error }

// notifyPause is the time before the first NOTIFY, because the server must listen before secondaries query it, and after
// each one, because each may cost a full transfer to each secondary. A test shortens it.
var notifyPause = 5 * time.Second

// notifySecondaries sends NOTIFY for each zone once the plugin or its predecessor has answers, and whenever an answer
// changes, until the context ends. It does nothing unless the handler is the transfer plugin.
func (m *Multicluster) notifySecondaries(ctx context.Context, handler plugin.Handler) {
	transfer, ok := handler.(notifier)
	for _, zone := range m.config.Zones { // in parallel: slow secondaries of one zone do not delay other zones
		if ok {
			go m.notify(ctx, transfer, zone)
		}
	}
}

// notify sends NOTIFY for one zone until the context ends. Failures are logged at most once a minute.
func (m *Multicluster) notify(ctx context.Context, transfer notifier, zone string) {
	logged := rate.Sometimes{Interval: time.Minute}
	var notified *record.State
	pause := notifyPause
	for wait := pause; await(ctx, time.After(wait)); {
		state := m.active().state() // read before NOTIFY: a change during NOTIFY needs another one
		if state == notified {      // at first, neither has answers
			wait = pause / 5 // one NOTIFY covers all changes in between
			continue
		}
		notified, wait = state, pause
		if err := transfer.Notify(zone); err != nil {
			logged.Do(func() {
				log.Warningf("NOTIFY for zone %s failed, so secondaries may answer with old records until they refresh: "+
					"check the addresses after 'to', and that those secondaries accept NOTIFY from this server: %s",
					zone, strings.ReplaceAll(err.Error(), "\n", "; "))
			})
		}
	}
}

// await reports whether the event occurred before the context ended.
func await[T any](ctx context.Context, event <-chan T) bool {
	select {
	case <-ctx.Done():
		return false
	case <-event:
		return ctx.Err() == nil
	}
}
