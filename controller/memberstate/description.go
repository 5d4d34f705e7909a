// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// redescribeEvery is the time after a change of what a member says of itself within which no other one counts: changes
// concern many services.
const redescribeEvery = time.Minute

// A description is what a member says of itself: its ClusterProperties, as text.
type description struct {
	// read was read last, and received is the last valid text of those. It is heard at once if next is over. A member that
	// is quarantined may be another cluster, so that what is heard is accepted with its data.
	read, received, heard, accepted string
	next                            time.Time
	// set is the cluster set by what was heard: it may be why that is not accepted. The properties were accepted.
	set        string
	properties map[string]string
}

// describe returns the description that the previous leader accepted.
func describe(accepted string) description {
	d := description{}
	_ = d.receive(accepted) // what the controller wrote is valid, or another writer changed it
	d.hear(time.Time{})
	d.accept()
	return d
}

// receive takes what was read, and returns an error if it is new and invalid.
func (d *description) receive(text string) error {
	if text == d.read {
		return nil
	}
	d.read = text
	_, err := scope.ParseProperties(text)
	if err == nil {
		d.received = text
	}
	return err
}

// hear has what was received count, now or later. A cluster whose properties become unknown stays in its set.
func (d *description) hear(now time.Time) {
	if d.received == d.heard || now.Before(d.next) {
		return
	}
	if d.heard != "" || !d.next.IsZero() {
		d.next = now.Add(redescribeEvery)
	}
	d.heard = d.received
	if parsed, _ := scope.ParseProperties(d.heard); parsed != nil {
		d.set = parsed[scope.ClusterSetProperty]
	}
}

// accept accepts what was heard.
func (d *description) accept() {
	d.accepted = d.heard
	d.properties, _ = scope.ParseProperties(d.accepted)
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
