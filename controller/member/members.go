// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// A Problem is a problem with a member or its credential. Unless Refused is set, the member cannot be read.
type Problem struct {
	Candidate *Candidate
	// Err is never nil.
	Err error
	// Refused means that the credential is not used.
	Refused bool
}

// Local is the part of the local cluster that Members reads.
type Local interface {
	// Credentials returns the Secrets that carry ClusterLabel.
	Credentials() []*corev1.Secret
	// Imported returns the services that are imported from a member, with the weight of the copies of its slices. The
	// map is new.
	Imported(cluster string) map[types.NamespacedName]limits.Weight
}

// A Tracker tracks the state of members. Its methods must not block. LeaseRead and Listed ignore a Member that left, or that
// another Member with a new credential replaced.
type Tracker interface {
	// Track is called before a member is read, and again when its credential or annotations change. Members already
	// lists the member.
	Track(*Member)
	// Untrack is called when a member left.
	Untrack(cluster string)
	// LeaseRead is called for every heartbeat Lease that is read. renewed reports whether the Lease was renewed since it was
	// last read.
	LeaseRead(from *Member, is Heartbeat, renewed bool)
	// Listed is called with the services in a complete list of a member's slices, and the UID in the heartbeat that was read
	// after the list, empty for none. Unless it ignores the list, it calls show, which makes the list visible to Store.Read,
	// and judges the list before any verdict is read.
	Listed(from *Member, uid string, services []types.NamespacedName, show func())
}

// A Handler requests reconciles. Its methods must not block.
type Handler interface {
	// ServiceChanged is called for each service when a member's slices for it changed.
	ServiceChanged(service types.NamespacedName)
	// MemberChanged is called when a cluster joined, synced, changed its annotations or left. All its services must be
	// reconciled.
	MemberChanged(cluster string)
}

// Config configures Members.
type Config struct {
	// Cluster is the id of the local cluster, which no member may have.
	Cluster string
	// Tokens is a directory that has the token of a member whose kubeconfig has no credential, in a file with the member's id as
	// its name. The file is read again every minute. Empty means none.
	Tokens string
	// Sources propose more members.
	Sources []Source
	// Limits apply to each member.
	Limits limits.Limits
	// Memory bounds the slices of all members, approximately, in bytes.
	Memory  int
	Local   Local
	Tracker Tracker
	// Report is called when a problem begins, and when its kind changes. It must not block.
	Report func(Problem)
	// SaveSecret writes the Secret of a member with a renewed token. It must fail if the Secret has changed since it was read.
	SaveSecret func(context.Context, *corev1.Secret) error
	// Clock times the lists of Sources and the renewal of tokens.
	Clock clock.WithTicker
	// Dial connects to members; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Members tracks the current member clusters and their connections. It is safe for concurrent use; one goroutine runs
// it.
type Members struct {
	config  Config
	handler Handler
	members atomic.Pointer[map[string]*Member] // by cluster; the map is replaced, never changed
	changed chan struct{}
	refused atomic.Pointer[[]Problem]
	memory  *limits.Pool
	shared  []*limits.Pool // memory, and the pools passed to Share
	turns   chan struct{}  // see Member.page

	// publishers are the members that publish slices of each service. Asking the stores of all 511 members in each reconcile
	// takes a third of the CPU time of a first import.
	publishers map[types.NamespacedName][]*Member
	publishing sync.RWMutex

	// joined has a function for each new member, which reads it. Only Join and Run use joined and sources.
	joined  []func()
	sources []*polled
}

// New returns Members without members; they join in Join and Run.
func New(config Config) *Members {
	s := &Members{
		config: config, changed: make(chan struct{}, 1), memory: limits.NewPool(config.Memory),
		turns:      make(chan struct{}, listsAtOnce),
		publishers: map[types.NamespacedName][]*Member{},
	}
	s.members.Store(&map[string]*Member{})
	s.Share(s.memory)
	return s
}

// Handle sets the handler. Call it before Join.
func (s *Members) Handle(handler Handler) { s.handler = handler }

// Share makes a pool reserve a part for each member. Call it before Join.
func (s *Members) Share(pool *limits.Pool) { s.shared = append(s.shared, pool) }

// Get returns a member, or nil if the cluster is not a member.
func (s *Members) Get(cluster string) *Member { return (*s.members.Load())[cluster] }

// List returns all members, sorted by id. The list is new.
func (s *Members) List() []*Member {
	return slices.SortedFunc(maps.Values(*s.members.Load()), func(a, b *Member) int { return cmp.Compare(a.cluster, b.cluster) })
}

// Refresh makes Run read the Secrets again. It does not block.
func (s *Members) Refresh() {
	select {
	case s.changed <- struct{}{}:
	default: // a signal already pending covers this change
	}
}

// Join adds the members whose credentials exist now; they are read until the context ends. before are the last members of the
// previous leader, without credentials.
func (s *Members) Join(ctx context.Context, before []*Candidate) {
	for _, source := range s.config.Sources {
		s.sources = append(s.sources, &polled{source: source, known: slices.DeleteFunc(slices.Clone(before), func(c *Candidate) bool {
			return c.Source != source.String()
		})})
	}
	s.readSources(ctx)
	s.refresh(ctx, before)
}

// Run reads the members, and keeps them in line with the Secrets and the Sources until the context ends. Call Join first.
func (s *Members) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	ticker := s.config.Clock.NewTicker(sourceInterval)
	defer ticker.Stop()
	for {
		for _, read := range s.joined {
			group.Go(read)
		}
		s.joined = nil
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		case <-ticker.C():
			mayHaveToken := s.config.Tokens != "" && len(s.Refused()) > 0 // a missing file may exist now
			if !s.readSources(ctx) && !mayHaveToken {
				continue
			}
		}
		s.refresh(ctx, nil)
	}
}

// refresh reads the Secrets. left are the members of the previous leader.
func (s *Members) refresh(ctx context.Context, left []*Candidate) {
	members, before := *s.members.Load(), map[string]*Candidate{}
	for _, candidate := range left {
		before[candidate.Cluster] = candidate
	}
	for cluster, member := range members {
		before[cluster] = member.Candidate()
	}
	var all []*Candidate
	for _, secret := range s.config.Local.Credentials() {
		all = append(all, ofSecret(secret))
	}
	for _, r := range s.sources {
		all = append(all, r.known...)
	}
	registered, problems := gather(s.config, all, before, members)
	s.report(problems)
	s.change(ctx, registered)
}

// change connects, replaces and disconnects members to match the registrations.
func (s *Members) change(ctx context.Context, registered map[string]*registration) {
	var ended, changed []*Member
	before, now := *s.members.Load(), map[string]*Member{}
	for cluster, member := range before {
		is := registered[cluster]
		if is == nil || !member.registration.Load().keeps(is) {
			ended = append(ended, member)
			member.leave()
			continue
		}
		if !maps.Equal(member.Annotations(), is.candidate.Annotations) {
			changed = append(changed, member)
		}
		is.credential, is.unread = member.registration.Load().credential, member.registration.Load().unread
		member.registration.Store(is)
		now[cluster] = member
	}
	for cluster, is := range registered {
		if now[cluster] == nil {
			now[cluster] = s.join(ctx, is)
			changed = append(changed, now[cluster])
			klog.FromContext(ctx).Info("Member joined, or has a new credential", "member", cluster, "credential", is.candidate.String())
		}
	}
	for _, pool := range s.shared {
		pool.SetMembers(slices.Collect(maps.Keys(now)))
	}
	s.members.Store(&now)
	for _, member := range ended {
		if now[member.cluster] == nil {
			s.config.Tracker.Untrack(member.cluster)
			s.handler.MemberChanged(member.cluster)
			klog.FromContext(ctx).Info("Member left", "member", member.cluster)
		}
	}
	for _, member := range changed { // before any of them is read
		s.config.Tracker.Track(member)
	}
	for _, member := range changed {
		s.handler.MemberChanged(member.cluster)
	}
	for _, member := range ended {
		for _, service := range member.Services() { // even services that were not imported
			s.slicesChanged(member, service)
		}
	}
}

// join returns a new member, which Run reads. Even a cluster with an unusable credential is a member, so its imported endpoints
// stay.
func (s *Members) join(ctx context.Context, is *registration) *Member {
	ctx, end := context.WithCancel(ctx)
	cluster := is.candidate.Cluster
	m := &Member{
		Store: limits.NewStore(cluster, s.config.Limits, s.memory, s.config.Local.Imported(cluster)),
		set:   s, cluster: cluster, problems: map[string]error{}, back: make(chan struct{}, 1),
	}
	m.registration.Store(is)
	m.leave = func() {
		end()
		m.Close()
	}
	if !is.unread {
		s.joined = append(s.joined, func() { m.run(ctx) })
	}
	return m
}

// report replaces the problems that Refused returns, and reports the new ones.
func (s *Members) report(problems []Problem) {
	text := func(p Problem) string { return p.Candidate.key() + " " + p.Err.Error() }
	known := map[string]bool{}
	for _, problem := range s.Refused() {
		known[text(problem)] = true
	}
	s.refused.Store(&problems)
	for _, problem := range problems {
		if !known[text(problem)] {
			s.config.Report(problem)
		}
	}
}
