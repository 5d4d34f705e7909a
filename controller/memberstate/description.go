// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/properties"
)

// A description is what a member says of itself, as far as it is accepted. A member that is quarantined may be another
// cluster, so that what it says is accepted with its data.
type description struct {
	// read is what was read last, and looked what was last looked at of that.
	read, looked member.Description
	// accepted is valid, and properties is what it has.
	accepted   member.Description
	properties map[string]string
}

// describe returns the description that the previous leader accepted.
func describe(accepted member.Description) description {
	d := description{read: accepted}
	_, _ = d.accept() // what the controller wrote is valid, or another writer changed it
	return d
}

// accept accepts what was read last and reports whether the properties changed. What is invalid changes nothing.
func (d *description) accept() (changed bool, err error) {
	if d.read == d.looked {
		return false, nil
	}
	d.looked = d.read
	parsed, err := properties.Parse(d.read.Properties)
	if err != nil {
		return false, err
	}
	changed = d.accepted != d.read
	d.accepted, d.properties = d.read, parsed
	return changed, nil
}

// Described implements member.Tracker.
func (t *Tracker) Described(cluster string, is member.Description) {
	t.judge(func(now time.Time) []liveness.Change {
		m := t.members[cluster]
		if m == nil {
			return nil
		}
		m.read = is
		return t.put(now, m)
	})
}

// accept accepts what a member says of itself. The caller holds the lock.
func (t *Tracker) accept(m *tracked) {
	changed, err := m.description.accept()
	if err != nil {
		t.reporter.Logger.Error(err, "Ignored what a member says of itself; its last known properties stay",
			"member", m.Cluster)
	}
	if changed {
		t.redescribed = append(t.redescribed, m.Cluster)
		t.unshown[m.Cluster] = struct{}{}
	}
}

// Properties returns the ClusterProperties of a member, name to value, as last known. The map is shared and must not be
// changed.
func (t *Tracker) Properties(cluster string) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.members[cluster]; m != nil {
		return m.properties
	}
	return nil
}
