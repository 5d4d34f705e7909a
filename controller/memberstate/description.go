// SPDX-License-Identifier: Apache-2.0

package memberstate

import "github.com/clusterset-dns/clusterset-dns/controller/scope"

// A description has the ClusterProperties of a member.
type description struct {
	// received is the last valid text, and accepted the text that counts: a member that is quarantined may be another cluster.
	received, accepted string
	// set is the cluster set in received: it may be why received is not accepted. properties are parsed from accepted.
	set        string
	properties map[string]string
}

// receive stores a text that was read, or returns an error if it is invalid. A cluster whose properties become unknown stays in
// its set.
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

// accept accepts received, and reports whether anything changed.
func (d *description) accept() bool {
	if d.received == d.accepted {
		return false
	}
	d.accepted = d.received
	d.properties, _ = scope.ParseProperties(d.accepted)
	return true
}

// SetLocal sets the values of scope.ClusterSetProperty and scope.NetworkProperty of the local cluster, empty for none. Call it
// before there are members, and when a value changes. Members of another set are quarantined within a second, members without a
// set are not.
func (t *Tracker) SetLocal(set, network string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set, t.network = set, network
}

// Properties returns the ClusterProperties of a member, name to value, as last accepted, nil if they never were known. The map
// is shared and must not be changed.
func (t *Tracker) Properties(cluster string) map[string]string { return t.Of(cluster).properties }
