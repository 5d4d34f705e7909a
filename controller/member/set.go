// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

const (
	// ClusterLabel marks a Secret as the credential of the member that its
	// value names.
	ClusterLabel = "clusterset-dns.github.io/cluster"
	// CIDRsAnnotation on that Secret confines the addresses of the member's
	// endpoints to prefixes, separated by commas.
	CIDRsAnnotation = "clusterset-dns.github.io/cidrs"
	// RankAnnotation on that Secret, or on the namespace of the controller for the
	// local cluster, ranks a cluster: see ParseRank.
	RankAnnotation = "clusterset-dns.github.io/rank"
	// KubeconfigKey is the key of the Secret's data that holds the kubeconfig.
	KubeconfigKey = "kubeconfig"
)

// A Static member is one that the operator named by a flag.
type Static struct {
	// Cluster is the id of the member.
	Cluster string
	// Kubeconfig is the path of its kubeconfig, Context the context to use in
	// it; empty means the current one.
	Kubeconfig string
	Context    string
}

// A Problem is what is wrong with a member or a credential.
type Problem struct {
	// Cluster is the id as the credential states it, which may be invalid.
	Cluster string
	// Secret is nil where the credential comes from a flag.
	Secret *corev1.Secret
	// Err is nil when a problem is over.
	Err error
	// Refused tells that the credential is not used, rather than that its
	// cluster cannot be reached.
	Refused bool
	// Misidentified tells that the member is another cluster than the
	// credential says, rather than that it cannot be read.
	Misidentified bool
	// Limited tells that the member exceeds a limit, rather than that it cannot
	// be read.
	Limited bool
}

// key tells credentials apart.
func (p Problem) key() string {
	if p.Secret != nil {
		return "secret/" + string(p.Secret.UID)
	}
	return "flag/" + p.Cluster
}

// Config is what a Set needs. All functions are called from any goroutine and
// must not block.
type Config struct {
	// Cluster is the id of the own cluster, which no member may have.
	Cluster string
	// KubeSystemUID returns the UID of the own namespace kube-system, which no
	// member may have. It is called once Secrets is.
	KubeSystemUID func() string
	// Static members are there for good and win over Secrets of the same id.
	Static []Static
	// Secrets returns the Secrets that carry ClusterLabel. It is called once
	// they are known, and again after each change.
	Secrets func() []*corev1.Secret
	// Limits bound what a member may contribute.
	Limits export.Limits
	// Memory is about how many bytes the slices of all members may take; 0 means
	// no limit.
	Memory int
	// Imported returns the services that are imported of a cluster already, with
	// what the copies of their slices weigh, in a new map.
	Imported func(cluster string) map[types.NamespacedName]export.Weight
	// Changed is told of each service of which a member's slices changed.
	Changed func(types.NamespacedName)
	// MemberChanged is told when everything that is known of a cluster has to
	// be looked at again: it joined, was seen for the first time, or left.
	MemberChanged func(cluster string)
	// Joins is told of a member before anything is read of it. Members has it
	// already, and all others that join with it.
	Joins func(*Member)
	// Read is told that the Lease of a member's heartbeat was read at a time,
	// of the UID in it, whether it was renewed since it was read before, and
	// whether it is that of a cluster which calls itself by another id.
	Read func(cluster, uid string, at time.Time, renewed, mistaken bool)
	// Listing is told of the services of which all slices of a member were
	// listed, before Slices returns them.
	Listing func(cluster string, services []types.NamespacedName)
	// Report is told of a problem once, and once when it is over.
	Report func(Problem)
	// Clock judges arrivals.
	Clock clock.WithTicker
	// Dial connects to members; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Set is the members that there are. It is safe for concurrent use; one
// goroutine runs it.
type Set struct {
	config  Config
	members atomic.Pointer[map[string]*Member]
	known   chan struct{}
	refused atomic.Int64
	memory  *memory
	turns   chan struct{} // of lists

	identifying   sync.Mutex
	misidentified map[string]string // what was reported, by Problem.key

	limiting sync.Mutex
	limited  map[string]string // what was reported, by cluster
}

// NewSet returns a set without members. It gets them in Run.
func NewSet(config Config) *Set {
	s := &Set{
		config: config, known: make(chan struct{}), limited: map[string]string{},
		memory: newMemory(config.Memory), turns: make(chan struct{}, listsAtOnce),
	}
	s.members.Store(&map[string]*Member{})
	return s
}

// Known is closed once it is known which members there are. Before that, a
// cluster that is no member may yet become one.
func (s *Set) Known() <-chan struct{} { return s.known }

// Get returns a member, nil where the cluster is none.
func (s *Set) Get(cluster string) *Member { return (*s.members.Load())[cluster] }

// Members returns all members, sorted by id.
func (s *Set) Members() []*Member {
	return slices.SortedFunc(maps.Values(*s.members.Load()), func(a, b *Member) int {
		return cmp.Compare(a.cluster, b.cluster)
	})
}

// Refused returns how many credentials are not used because they are wrong.
func (s *Set) Refused() int { return int(s.refused.Load()) }

// life is one joined member: what it was made from and how to end it.
type life struct {
	member *Member
	source *source
	leave  context.CancelFunc
	// read reads the member until it leaves.
	read func()
}

// Run keeps the members to what the flags and the Secrets say, until the
// context ends. It looks at the Secrets at once, and again whenever something
// is received from changed.
func (s *Set) Run(ctx context.Context, changed <-chan struct{}) {
	var group sync.WaitGroup
	defer group.Wait()
	lives := map[string]*life{}
	told := map[string]string{}
	var once sync.Once
	for {
		told = s.refresh(ctx, &group, lives, told)
		once.Do(func() { close(s.known) })
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// refresh looks at the flags and the Secrets, and returns which problems of
// them are told now.
func (s *Set) refresh(ctx context.Context, group *sync.WaitGroup, lives map[string]*life, before map[string]string) map[string]string {
	sources, problems := gather(s.config)
	s.refused.Store(int64(len(problems)))
	told := s.tell(before, problems)
	s.change(ctx, group, lives, sources, func(source *source) bool {
		key := Problem{Cluster: source.cluster, Secret: source.secret.Load()}.key()
		return before[key] != "" && told[key] == ""
	})
	return told
}

// change starts, replaces and ends members such that the sources are what
// lives. corrected tells which of them were refused before.
func (s *Set) change(ctx context.Context, group *sync.WaitGroup, lives map[string]*life, sources map[string]*source, corrected func(*source) bool) {
	var affected []string
	var joined []*life
	// What a member spoke of is looked at without it, also where nothing came of it.
	var spoken []types.NamespacedName
	for cluster, living := range lives {
		if sources[cluster] == nil {
			spoken = append(spoken, living.member.Services()...)
			living.leave()
			delete(lives, cluster)
			s.unlimited(cluster)
			klog.FromContext(ctx).Info("Member left", "member", cluster)
			affected = append(affected, cluster)
		}
	}
	for cluster, source := range sources {
		living := lives[cluster]
		recovering := corrected(source) || living != nil && living.member.toldOf()
		switch {
		case living != nil && living.source.sameAs(source):
			if living.source.renew(source) {
				affected = append(affected, cluster)
			}
			if corrected(source) {
				living.member.recovering()
			}
			continue
		case living != nil && source.err != nil:
			// A credential that became unusable removes nothing, and what
			// is connected stays so. The annotations by which a
			// person has the say count all the same.
			if living.source.renew(source) {
				affected = append(affected, cluster)
			}
			continue
		case living != nil:
			spoken = append(spoken, living.member.Services()...)
			living.leave()
		}
		if living == nil {
			klog.FromContext(ctx).Info("Member joined", "member", cluster, "credential", source.String())
		}
		lives[cluster] = s.join(ctx, source, recovering && source.err == nil)
		joined = append(joined, lives[cluster])
		affected = append(affected, cluster)
	}
	s.memory.setMembers(slices.Collect(maps.Keys(lives)))
	members := make(map[string]*Member, len(lives))
	for cluster, living := range lives {
		members[cluster] = living.member
	}
	s.members.Store(&members)
	// Whoever is told of a member finds it in the set, and so does whoever is
	// called by what is read of another one.
	for _, living := range joined {
		s.config.Joins(living.member)
	}
	for _, living := range joined {
		if living.source.err == nil {
			group.Go(living.read)
		}
	}
	s.identify()
	for _, cluster := range affected {
		s.config.MemberChanged(cluster)
	}
	for _, service := range spoken {
		s.config.Changed(service)
	}
}

// join gives a member its life, which is not read yet. One whose credential is
// unusable is a member all the same: what it contributed stays.
func (s *Set) join(ctx context.Context, source *source, recovering bool) *life {
	cluster := source.cluster
	var member *Member
	member = newMember(cluster, s.config.Clock, s.config.Changed,
		func() {
			klog.FromContext(ctx).Info("Member synced", "member", cluster, "slices", member.Published())
			s.config.MemberChanged(cluster)
		},
		func(err error) { s.config.Report(Problem{Cluster: cluster, Secret: source.secret.Load(), Err: err}) })
	member.source = source
	member.heartbeat.read = func(uid, holder string, at time.Time, sign bool) {
		s.config.Read(cluster, uid, at, sign, holder != "" && holder != cluster)
	}
	member.heartbeat.identified = s.identify
	member.slices.listing = func(services []types.NamespacedName) { s.config.Listing(cluster, services) }
	member.slices.limits = s.config.Limits
	member.slices.imported = func() map[types.NamespacedName]export.Weight { return s.config.Imported(cluster) }
	member.slices.turns = s.turns
	member.slices.account = s.memory.open(cluster, member.slices.imported, member.slices.room)
	member.slices.exceeded = func(excess Excess) { s.exceeded(cluster, source, excess) }
	if recovering {
		member.recovering()
	}
	ctx, leave := context.WithCancel(ctx)
	read := func() {
		logger := klog.FromContext(ctx).WithValues("member", cluster)
		credential := source.credential
		if s.config.Dial != nil {
			credential.Config = rest.CopyConfig(credential.Config)
			credential.Config.Dial = s.config.Dial
		}
		if err := member.run(klog.NewContext(ctx, logger), credential); err != nil {
			s.config.Report(Problem{Cluster: cluster, Secret: source.secret.Load(), Err: err, Refused: true})
		}
	}
	return &life{member: member, source: source, leave: leave, read: read}
}

// exceeded reports the limits that a member exceeds where they are others than
// before.
func (s *Set) exceeded(cluster string, source *source, excess Excess) {
	var names []string
	for limit := range excess {
		names = append(names, string(limit))
	}
	slices.Sort(names)
	kinds := strings.Join(names, " ")
	s.limiting.Lock()
	before := s.limited[cluster]
	s.limited[cluster] = kinds
	s.limiting.Unlock()
	if kinds != before {
		s.config.Report(Problem{Cluster: cluster, Secret: source.secret.Load(), Err: excess.err(cluster, s.config.Limits), Limited: true})
	}
}

func (s *Set) unlimited(cluster string) {
	s.limiting.Lock()
	defer s.limiting.Unlock()
	delete(s.limited, cluster)
}

// tell reports the problems that were not told yet and returns what is told
// now.
func (s *Set) tell(told map[string]string, problems []Problem) map[string]string {
	now := make(map[string]string, len(problems))
	for _, problem := range problems {
		key := problem.key()
		now[key] = problem.Err.Error()
		if told[key] != now[key] {
			s.config.Report(problem)
		}
	}
	return now
}
