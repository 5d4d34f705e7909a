// SPDX-License-Identifier: Apache-2.0

//go:build stateful

package datapath

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// workload is a store with one replica per cluster. stateful/<name>.bash runs it.
type workload struct {
	name  string
	ports []corev1.ServicePort
}

func tcp(name string, number int32) corev1.ServicePort {
	return port(name, corev1.ProtocolTCP, number, number)
}

var workloads = []workload{
	{"etcd", []corev1.ServicePort{tcp("etcd-server", 2380), tcp("etcd-client", 2379)}},
	{"postgresql", []corev1.ServicePort{tcp("postgresql", 5432)}},
	{"redis", []corev1.ServicePort{tcp("redis", 6379), tcp("sentinel", 26379)}},
	{"galera", []corev1.ServicePort{tcp("mysql", 3306), tcp("replication", 4567), tcp("ist", 4568), tcp("sst", 4444)}},
	{"nats", []corev1.ServicePort{tcp("client", 4222), tcp("route", 6222)}},
	{"rabbitmq", []corev1.ServicePort{tcp("amqp", 5672), tcp("distribution", 25672), tcp("epmd", 4369)}},
}

// TestStateful runs stores across three clusters. The replicas know each other only by name. The cluster of the leader is
// lost and returns, with another address of the replica. No acknowledged write may be lost.
func TestStateful(t *testing.T) {
	b := newBed(t, "nftables", false)
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) { tellStore(t, newStore(t, b, w)) })
	}
}

func tellStore(t *testing.T, s *store) {
	for _, c := range s.bed.all() {
		s.create(t, c)
		c.export(t, s.service)
		s.start(t, c)
	}
	s.awaitMembers(t)
	s.verb(t, "setup")
	leader := s.leader(t)
	if s.client.cluster == leader {
		s.client = s.bed.east.client(t, s.namespace, 0)
	}
	program, arguments := s.bash(s.client, "writer")
	writer := &stream{s.client.run(t, program, arguments...)}
	awaitWrites(t, writer)

	t.Cleanup(func() { must(t, leader.APIServer().Thaw()) }) // for the next stores, if the test fails
	must(t, leader.APIServer().Freeze())
	var cut []way
	for _, other := range s.bed.all() {
		if other != leader {
			cut = append(cut, ways(leader.reached, other.reached)...)
		}
	}
	repair, _ := s.bed.drop(t, cut)
	s.crash(t, leader)
	s.verb(t, "failover", leader.Name())
	awaitWrites(t, writer)
	repair()
	must(t, leader.APIServer().Thaw())
	s.create(t, leader)
	s.start(t, leader)
	s.awaitMembers(t)
	awaitWrites(t, writer)

	must(t, writer.Kill())
	written, longest := acknowledged(t, writer, time.Time{}), time.Duration(0)
	for i, write := range written[1:] {
		longest = max(longest, write.At.Sub(written[i].At))
	}
	t.Logf("%d acknowledged writes, with no other for %s at most", len(written), seconds(longest))
	stored := sets.New(strings.Fields(s.verb(t, "numbers"))...)
	if lost := slices.DeleteFunc(written, func(write tally.Attempt) bool { return stored.Has(write.Who) }); len(lost) > 0 {
		t.Errorf("%d acknowledged writes are lost, the first of %s, the last of %s", len(lost), lost[0].At, lost[len(lost)-1].At)
	}
}

// acknowledged returns the writes that were acknowledged since a time.
func acknowledged(t testing.TB, writer *stream, since time.Time) tally.Attempts {
	return slices.DeleteFunc(writer.since(t, since), func(a tally.Attempt) bool { return a.Failure != "" })
}

// awaitWrites waits for new acknowledged writes.
func awaitWrites(t testing.TB, writer *stream) {
	const rounds = 20
	now := time.Now()
	eventually(t, "acknowledged writes", func(context.Context) error {
		if found := len(acknowledged(t, writer, now)); found < rounds {
			return fmt.Errorf("there are %d since %s", found, now.Format(time.TimeOnly))
		}
		return nil
	})
}

// store is a running workload.
type store struct {
	workload
	service
	bed      *bed
	recipe   string // path of the file
	etcd     string // path of the program etcd
	data     string // folder of the volumes
	replicas map[*cluster]*pod
	client   *pod // runs the writer and verbs
}

// replicaName is the name of the replica's pod in each cluster, as of the first pod of a StatefulSet.
const replicaName = "db-0"

func newStore(t testing.TB, b *bed, w workload) *store {
	recipe, err := filepath.Abs(filepath.Join("stateful", w.name+".bash"))
	must(t, err)
	paths, err := assets.Ensure()
	must(t, err)
	s := &store{
		workload: w, bed: b, recipe: recipe, etcd: paths[assets.Etcd], data: t.TempDir(), replicas: map[*cluster]*pod{},
		service: service{
			namespace: b.namespace(t), name: "db", ports: w.ports,
			change: func(s *corev1.Service) {
				s.Spec.ClusterIP = corev1.ClusterIPNone
				s.Spec.PublishNotReadyAddresses = true // replicas become ready only after they have found each other
			},
		},
	}
	for _, c := range b.all() {
		must(t, os.Mkdir(s.volume(c), 0o700))
	}
	s.client = b.north.client(t, s.namespace, 0)
	return s
}

func (s *store) volume(c *cluster) string { return filepath.Join(s.data, c.Name()) }

// bash returns the command line of a verb of the recipe in a pod. Its processes end with the first of them, and do not run
// as root, which some programs refuse.
func (s *store) bash(p *pod, args ...string) (program string, arguments []string) {
	domain := fmt.Sprintf("%s.%s.%s", s.service.name, s.namespace, zone)
	nameOf := func(c *cluster) string { return fmt.Sprintf("%s.%s.%s", replicaName, c.Name(), domain) }
	var names []string
	for _, c := range s.bed.all() {
		names = append(names, nameOf(c))
	}
	return "unshare", append([]string{
		"--user", "--map-user=65534", "--map-group=65534", "--pid", "--fork", "--kill-child", "--mount-proc", "--", "env",
		"CLUSTER=" + p.cluster.Name(), "SELF=" + nameOf(p.cluster), "NAMES=" + strings.Join(names, " "),
		"DOMAIN=" + domain, "DATA=" + s.volume(p.cluster), "ETCD=" + s.etcd,
		"bash", s.recipe,
	}, args...)
}

// tryVerb runs a verb of the recipe in the client's pod.
func (s *store) tryVerb(ctx context.Context, args ...string) (string, error) {
	program, arguments := s.bash(s.client, args...)
	return s.client.command(ctx, program, arguments...)
}

func (s *store) verb(t testing.TB, args ...string) string {
	out, err := s.tryVerb(t.Context(), args...)
	must(t, err)
	return out
}

// create creates the Pod of a cluster's replica. It gets a new address.
func (s *store) create(t testing.TB, c *cluster) {
	pods := c.CoreV1().Pods(s.namespace)
	eventually(t, "the Pod to go", func(ctx context.Context) error {
		err := pods.Delete(ctx, replicaName, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	s.replicas[c] = c.pod(t, podSpec{namespace: s.namespace, name: replicaName, subdomain: s.service.name, app: s.service.name})
	s.replicas[c].setReady(t, false)
}

// start starts the programs of a cluster's replica.
func (s *store) start(t testing.TB, c *cluster) {
	p := s.replicas[c]
	program, arguments := s.bash(p, "keep")
	p.server = p.run(t, program, arguments...)
}

// crash kills the programs of a cluster's replica, and removes its network.
func (s *store) crash(t testing.TB, c *cluster) {
	p := s.replicas[c]
	must(t, p.server.Kill())
	must(t, p.Namespace.Close())
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
	for _, p := range s.replicas {
		p.setReady(t, true)
	}
}
