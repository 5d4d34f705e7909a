// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"errors"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	documents "github.com/clusterset-dns/clusterset-dns/controller/state"
)

// redescribeEvery is the time after a change of what a member says of itself within which no other one counts: changes
// concern many services.
const redescribeEvery = time.Minute

// A description is what a member says of itself.
type description struct {
	// received is what was read last, with the last valid text instead of one that is invalid. It is heard at once if next
	// is over. A member that is quarantined may be another cluster, so that what is heard is accepted with its data.
	received, heard, accepted member.Description
	next                      time.Time
	// set is the cluster set by what was heard: it may be why that is not accepted. The properties were accepted.
	set        string
	properties map[string]string
}

// describe returns the description that the previous leader accepted.
func describe(accepted member.Description) description {
	d := description{}
	_ = d.receive(accepted) // what the controller wrote is valid, or another writer changed it
	d.hear(time.Time{})
	d.next = time.Time{}
	d.accept()
	return d
}

// receive takes what was read, and returns an error about what is invalid.
func (d *description) receive(is member.Description) error {
	_, err := scope.ParseProperties(is.Properties)
	if err != nil {
		is.Properties = d.received.Properties
	}
	d.received = is
	return err
}

// hear has what was received count, now or later. A cluster whose properties become unknown stays in its set.
func (d *description) hear(now time.Time) {
	if d.received == d.heard || now.Before(d.next) {
		return
	}
	if d.heard != (member.Description{}) || !d.next.IsZero() {
		d.next = now.Add(redescribeEvery)
	}
	d.heard = d.received
	if parsed, _ := scope.ParseProperties(d.heard.Properties); parsed != nil {
		d.set = parsed[scope.ClusterSetProperty]
	}
}

// accept accepts what was heard.
func (d *description) accept() {
	d.accepted = d.heard
	d.properties, _ = scope.ParseProperties(d.accepted.Properties)
}

// Described implements member.Tracker.
func (t *Tracker) Described(cluster string, is member.Description) {
	t.update(cluster, func(m *tracked) {
		if err := m.receive(is); err != nil {
			t.reporter.Logger.Error(errors.New(documents.Safe(err.Error())), "Ignored a part of what a member says of itself; what was known of that stays",
				"member", m.Cluster)
		}
	})
}

// accept accepts what a member says of itself. The caller holds the lock.
func (t *Tracker) accept(m *tracked) {
	if m.heard == m.accepted {
		return
	}
	before := m.accepted.Properties
	if m.accept(); m.accepted.Properties != before {
		t.redescribed = append(t.redescribed, m.Cluster)
	}
}

// SetClusterSet sets the value of scope.ClusterSetProperty of the local cluster, empty for none, before anything is known of
// members, and when it changes. Members with another value are quarantined, and those without one are not.
func (t *Tracker) SetClusterSet(set string) {
	t.change(func(now time.Time) {
		t.set = set
		t.putAll(now)
	})
}

// Properties returns the ClusterProperties of a member, name to value, as last known, nil if they never were. The map is
// shared and must not be changed.
func (t *Tracker) Properties(cluster string) map[string]string { return t.of(cluster).properties }
