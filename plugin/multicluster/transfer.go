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

// Transfer implements transfer.Transferer. It walks a snapshot, so that what is sent is of one moment. IXFR is answered
// in full, or with the SOA where the client's serial is the present one or a newer (RFC 1995, section 2).
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

// notifier sends NOTIFY (RFC 1996) to the secondaries of a zone, and returns once they have answered or cannot be
// reached. The transfer plugin is one.
type notifier interface{ Notify(zone string) error }

// cadence limits how often the secondaries of a zone get NOTIFY: each one may cost a full transfer to each secondary.
type cadence struct {
	start  time.Duration // before the first NOTIFY: the server must listen before a secondary asks it
	gather time.Duration // between looks at the serial: a NOTIFY covers all changes until then
	pause  time.Duration // after a NOTIFY
}

var notifyCadence = cadence{start: 5 * time.Second, gather: time.Second, pause: 5 * time.Second}

// notifySecondaries sends NOTIFY for each zone once everything was listed, and again when the serial of the SOA records has
// moved, until the context ends. Nothing runs without the transfer plugin, which is the handler.
func (m *Multicluster) notifySecondaries(ctx context.Context, handler plugin.Handler) {
	transfer, ok := handler.(notifier)
	for _, zone := range m.config.Zones { // a secondary of one zone does not delay those of another
		if ok {
			go m.notify(ctx, notifyCadence, transfer, zone)
		}
	}
}

// notify sends NOTIFY for one zone until the context ends. Failures are logged at most once a minute.
func (m *Multicluster) notify(ctx context.Context, c cadence, transfer notifier, zone string) {
	logged := rate.Sometimes{Interval: time.Minute}
	var notified *record.State
	for wait := c.start; await(ctx, time.After(wait)); {
		state := m.state() // taken first: a change while NOTIFY is being sent needs another one
		if state == nil || notified != nil && notified.Serial == state.Serial {
			wait = c.gather
			continue
		}
		notified, wait = state, c.pause
		if err := transfer.Notify(zone); err != nil {
			logged.Do(func() {
				log.Warningf("NOTIFY for zone %s failed, so secondaries may answer with old records until they refresh: "+
					"check the addresses after 'to', and that those secondaries accept NOTIFY from this server: %s",
					zone, strings.ReplaceAll(err.Error(), "\n", "; "))
			})
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
