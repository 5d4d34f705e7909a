// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"errors"
	"slices"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/properties"
	documents "github.com/clusterset-dns/clusterset-dns/controller/state"
)

// redescribeEvery is the time after a change of what a member says of itself within which no other one counts: changes
// concern many services.
const redescribeEvery = time.Minute

// A description is what a member says of itself, as far as it is accepted. A member that is quarantined may be another
// cluster, so that what it says is accepted with its data.
type description struct {
	// read is what was read last, heard what counts of that, and looked what was last looked at of the latter.
	read, heard, looked member.Description
	// next is when another change counts.
	next time.Time
	// accepted is valid, and the others are what it has.
	accepted   member.Description
	properties map[string]string
	policy     accept.Policy
	// set is the cluster set of the member as last read. Before it said anything in this term, its name is not known.
	set  ClusterSet
	said bool
}

// describe returns the description that the previous leader accepted.
func describe(accepted member.Description) description {
	d := description{policy: accept.Policy{Others: accept.All}}
	d.read = accepted
	d.hear(time.Time{})
	_, _ = d.accept() // what the controller wrote is valid, or another writer changed it
	return d
}

// hear has what was read last count, now or at a later heartbeat. The cluster set counts before the rest is accepted: it
// may be why it is not. A cluster whose properties become unknown stays in its sets.
func (d *description) hear(now time.Time) {
	if d.read == d.heard || now.Before(d.next) {
		return
	}
	if d.heard != (member.Description{}) || !d.next.IsZero() {
		d.next = now.Add(redescribeEvery)
	}
	d.heard = d.read
	d.set.Name = export.Set(d.heard.ClusterSet)
	if parsed, err := properties.Parse(d.heard.Properties); err == nil && parsed != nil {
		d.set.Listed = properties.Sets(parsed)
	}
}

// accept accepts what was heard last and reports whether that changed anything. What is invalid changes nothing.
func (d *description) accept() (changed bool, err error) {
	if d.heard == d.looked {
		return false, nil
	}
	d.looked = d.heard
	before := d.accepted
	parsed, propertiesErr := properties.Parse(d.heard.Properties)
	if propertiesErr == nil {
		d.accepted.Properties, d.properties = d.heard.Properties, parsed
	}
	policy, acceptsErr := accept.Decode(d.heard.Accepts)
	if acceptsErr == nil {
		d.accepted.Accepts, d.policy = d.heard.Accepts, policy
	}
	return d.accepted != before, errors.Join(propertiesErr, acceptsErr)
}

// A Redescription is a change of what a member says of itself.
type Redescription struct {
	Cluster string
	// Properties reports whether its properties changed.
	Properties bool
	// Before and After are what it accepts of its members.
	Before, After accept.Policy
}

// Described implements member.Tracker.
func (t *Tracker) Described(cluster string, is member.Description) {
	t.judge(func(now time.Time) []liveness.Change {
		m := t.members[cluster]
		if m == nil {
			return nil
		}
		m.read, m.said = is, true
		return t.put(now, m)
	})
}

// accept accepts what a member says of itself. The caller holds the lock.
func (t *Tracker) accept(m *tracked) {
	properties, policy := m.accepted.Properties, m.policy
	changed, err := m.accept()
	if err != nil {
		t.reporter.Logger.Error(errors.New(documents.Safe(err.Error())), "Ignored a part of what a member says of itself; what was known of that stays",
			"member", m.Cluster)
	}
	if changed {
		t.notePolicy(m)
		t.redescribed = append(t.redescribed, Redescription{
			Cluster: m.Cluster, Properties: m.accepted.Properties != properties, Before: policy, After: m.policy,
		})
		t.unshown[m.Cluster] = struct{}{}
	}
}

// A ClusterSet is what is known of the cluster set of a controller.
type ClusterSet struct {
	// Name is that of the set.
	Name export.Set
	// Listed are the sets of its cluster by its ClusterProperties: see properties.Sets.
	Listed []string
}

// excludes reports whether a member is of another cluster set. A member whose cluster lists no sets may be of this one;
// named is whether its name is known.
func (s ClusterSet) excludes(member ClusterSet, named bool) bool {
	switch {
	case named && s.Name != member.Name:
		return true
	case len(member.Listed) == 0:
		return false
	case s.Name != "":
		return !slices.Contains(member.Listed, string(s.Name))
	}
	return len(s.Listed) > 0 &&
		!slices.ContainsFunc(s.Listed, func(set string) bool { return slices.Contains(member.Listed, set) })
}

// SetClusterSet sets the cluster set of the local cluster, before anything is known of members, and when it changes.
// Members of others are quarantined.
func (t *Tracker) SetClusterSet(set ClusterSet) {
	t.mu.Lock()
	same := t.set.Name == set.Name && slices.Equal(t.set.Listed, set.Listed)
	t.mu.Unlock()
	if same {
		return
	}
	t.judge(func(now time.Time) (changes []liveness.Change) {
		t.set = set
		for _, m := range t.members {
			changes = append(changes, t.put(now, m)...)
		}
		return changes
	})
}

// Properties returns the ClusterProperties of a member, name to value, as last known, nil if they never were. The map is
// shared and must not be changed.
func (t *Tracker) Properties(cluster string) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.members[cluster]; m != nil {
		return m.properties
	}
	return nil
}

// notePolicy notes whether a member may refuse something.
func (t *Tracker) notePolicy(m *tracked) {
	if !m.policy.Everything() {
		t.limiting.Store(true)
	}
}

// AnyPolicy reports whether the Policy of a member ever refused something. Most sets have none.
func (t *Tracker) AnyPolicy() bool { return t.limiting.Load() }

// Policy returns what a member accepts of its members, as last known.
func (t *Tracker) Policy(cluster string) accept.Policy {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.members[cluster]; m != nil {
		return m.policy
	}
	return accept.Policy{Others: accept.All}
}
