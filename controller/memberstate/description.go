// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// redescribeEvery is the time after a change of what a member says of itself within which no other one is accepted: changes
// concern many services. Its cluster set is judged at once.
const redescribeEvery = time.Minute

// A description is what a member says of itself: its ClusterProperties, as text.
type description struct {
	// received is the last valid text, and accepted the one that counts: a member that is quarantined may be another cluster.
	// Another one may be accepted once next is over.
	received, accepted string
	next               time.Time
	// set is the cluster set by what was received: it may be why that is not accepted. The properties were accepted.
	set        string
	properties map[string]string
}

// describe returns the description that the previous leader accepted.
func describe(accepted string) description {
	d := description{}
	_ = d.receive(accepted) // what the controller wrote is valid, or another writer changed it
	d.accept(time.Time{})
	return d
}

// receive takes what was read, and returns an error if it is invalid. A cluster whose properties become unknown stays in its
// set.
func (d *description) receive(text string) error {
	parsed, err := scope.ParseProperties(text)
	if err != nil {
		return err
	}
	if d.received = text; parsed != nil {
		d.set = parsed[scope.ClusterSetProperty]
	}
	return nil
}

// accept accepts what was received, now or with a later call, and reports whether anything changed.
func (d *description) accept(now time.Time) bool {
	if d.received == d.accepted || now.Before(d.next) {
		return false
	}
	if d.accepted != "" || !d.next.IsZero() {
		d.next = now.Add(redescribeEvery)
	}
	d.accepted = d.received
	d.properties, _ = scope.ParseProperties(d.accepted)
	return true
}

// SetLocal sets the values of scope.ClusterSetProperty and scope.NetworkProperty of the local cluster, empty for none, before
// anything is known of members, and when they change. Members of another set are quarantined within a second, and those of
// none are not.
func (t *Tracker) SetLocal(set, network string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set, t.network = set, network
}

// Properties returns the ClusterProperties of a member, name to value, as last known, nil if they never were. The map is
// shared and must not be changed.
func (t *Tracker) Properties(cluster string) map[string]string { return t.Of(cluster).properties }
