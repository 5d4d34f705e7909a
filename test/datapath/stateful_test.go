// SPDX-License-Identifier: Apache-2.0

//go:build stateful

package datapath

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// workload is a store with one replica per cluster. stateful/<name>.bash runs it.
type workload struct {
	name     string
	packages string // Debian packages with its programs
	programs []string
	ports    []corev1.ServicePort
	// promoted reports that no program of the store elects a new leader: the test promotes one.
	promoted bool
}

func tcp(name string, number int32) corev1.ServicePort {
	return port(name, corev1.ProtocolTCP, number, number)
}

var workloads = []workload{
	{name: "etcd", ports: []corev1.ServicePort{tcp("etcd-server", 2380), tcp("etcd-client", 2379)}},
	{
		name: "postgresql", packages: "postgresql", programs: []string{"psql"}, promoted: true,
		ports: []corev1.ServicePort{tcp("postgresql", 5432)},
	},
	{
		name: "redis", packages: "redis-server redis-sentinel", programs: []string{"redis-server", "redis-sentinel"},
		ports: []corev1.ServicePort{tcp("redis", 6379), tcp("sentinel", 26379)},
	},
	{
		name: "galera", packages: "mariadb-server galera-4 rsync", programs: []string{"mariadbd", "rsync"},
		ports: []corev1.ServicePort{tcp("mysql", 3306), tcp("replication", 4567), tcp("ist", 4568), tcp("sst", 4444)},
	},
	{
		name: "nats", packages: "nats-server", programs: []string{"nats-server"},
		ports: []corev1.ServicePort{tcp("client", 4222), tcp("route", 6222)},
	},
	{
		name: "rabbitmq", packages: "rabbitmq-server", programs: []string{"rabbitmq-server"},
		ports: []corev1.ServicePort{tcp("amqp", 5672), tcp("distribution", 25672), tcp("epmd", 4369)},
	},
}

// TestStateful runs stores across three clusters. The replicas know each other only by name. The test breaks the
// infrastructure, and no acknowledged write may be lost.
func TestStateful(t *testing.T) {
	b := newBed(t, "nftables", false)
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			for _, program := range w.programs {
				if _, err := exec.LookPath(program); err != nil {
					t.Fatalf("install %s: apt-get install --no-install-recommends %s", program, w.packages)
				}
			}
			tellStore(t, b, w)
		})
	}
}

// rounds is the number of acknowledged writes for which awaitWrites waits.
const rounds = 20

func tellStore(t *testing.T, b *bed, w workload) {
	s := newStore(t, b, w)
	for _, c := range b.all() {
		s.create(t, c)
		c.export(t, s.service)
		s.start(t, c)
	}
	s.awaitMembers(t)
	s.verb(t, "setup")

	for _, fault := range []struct {
		name string
		do   func(leader *cluster)
	}{
		{"cluster of the leader lost", func(leader *cluster) {
			t.Cleanup(func() { must(t, leader.APIServer().Thaw()) }) // for the next stores, if the test fails
			must(t, leader.APIServer().Freeze())
			repair := s.isolate(t, leader)
			s.crash(t, leader)
			s.recover(t, leader)
			repair()
			must(t, leader.APIServer().Thaw())
			s.create(t, leader)
			s.start(t, leader)
		}},
		{"cluster of the leader cut off", func(leader *cluster) {
			repair := s.isolate(t, leader)
			s.recover(t, leader)
			repair()
			if w.promoted {
				s.stop(t, leader) // it still considers itself the primary
				s.create(t, leader)
				s.start(t, leader)
			}
		}},
		{"rolling restart", func(leader *cluster) {
			for _, c := range b.all() {
				led := s.leader(t) == c
				s.stop(t, c)
				if led && w.promoted {
					s.verb(t, "failover", c.Name())
				}
				s.create(t, c)
				s.start(t, c)
				s.awaitMembers(t)
			}
		}},
	} {
		leader := s.leader(t)
		s.write(t, leader)
		fault.do(leader)
		s.awaitMembers(t)
		s.awaitWrites(t)
		t.Logf("%s: all replicas are back; no acknowledged write for %v at most", fault.name,
			s.stopWriting(t).Round(100*time.Millisecond))
	}
	stored := sets.New(strings.Fields(s.verb(t, "numbers"))...)
	lost := slices.DeleteFunc(slices.Clone(s.written), func(write tally.Attempt) bool { return stored.Has(write.Who) })
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged writes are lost, the first of %s, the last of %s", len(lost), len(s.written),
			lost[0].At, lost[len(lost)-1].At)
	}
}

// recover waits until writes are acknowledged without the replica of a cluster.
func (s *store) recover(t testing.TB, without *cluster) {
	if s.promoted {
		s.verb(t, "failover", without.Name())
	}
	s.awaitWrites(t)
}

// isolate drops packets between the pods of a cluster and the pods of other clusters, until repair is called.
func (s *store) isolate(t testing.TB, c *cluster) (repair func()) {
	var cut []way
	for _, other := range s.bed.all() {
		if other != c {
			cut = append(cut, ways(c.reached, other.reached)...)
		}
	}
	repair, _ = s.bed.drop(t, cut)
	return repair
}

// leader returns the cluster of the leader.
func (s *store) leader(t testing.TB) (leader *cluster) {
	eventually(t, "a leader", func(ctx context.Context) error {
		out, err := s.tryVerb(ctx, "leader")
		for _, c := range s.bed.all() {
			if c.Name() == strings.TrimSpace(out) {
				leader = c
				return nil
			}
		}
		return fmt.Errorf("it is %q: %w", out, err)
	})
	return leader
}

// awaitMembers waits until all replicas are healthy, and makes them ready.
func (s *store) awaitMembers(t testing.TB) {
	eventually(t, "all replicas", func(ctx context.Context) error {
		out, err := s.tryVerb(ctx, "members")
		if strings.TrimSpace(out) != "3" {
			return fmt.Errorf("there are %q: %w", out, err)
		}
		return nil
	})
	for _, r := range s.replicas {
		r.setReady(t, true)
	}
}
