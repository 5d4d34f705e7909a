// SPDX-License-Identifier: Apache-2.0

//go:build stateful

package datapath

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// store is a running workload.
type store struct {
	workload
	service
	bed      *bed
	recipe   string // path of the file
	etcd     string // path of the program etcd
	data     string // folder of the volumes
	replicas map[*cluster]*replica
	clients  map[*cluster]*pod
	client   *pod    // runs the writer and verbs
	writer   *stream // writes numbers, one at a time
	next     int     // the first number of the next writer
	written  tally.Attempts
	fillers  int
}

// replicaName is the name of the replica's pod in each cluster, as of the first pod of a StatefulSet.
const replicaName = "db-0"

func newStore(t testing.TB, b *bed, w workload) *store {
	recipe, err := filepath.Abs(filepath.Join("stateful", w.name+".bash"))
	must(t, err)
	paths, err := assets.Ensure()
	must(t, err)
	namespace := b.namespace(t)
	s := &store{
		workload: w, bed: b, recipe: recipe, etcd: paths[assets.Etcd], data: t.TempDir(), replicas: map[*cluster]*replica{},
		clients: map[*cluster]*pod{}, next: 1,
		service: service{
			namespace: namespace, name: "db", ports: w.ports,
			change: func(s *corev1.Service) {
				s.Spec.ClusterIP = corev1.ClusterIPNone
				s.Spec.PublishNotReadyAddresses = true // replicas become ready only after they have found each other
			},
		},
	}
	for _, c := range b.all() {
		must(t, os.Mkdir(s.volume(c), 0o700))
		s.clients[c] = c.client(t, namespace, 0)
	}
	s.client = s.clients[b.north]
	return s
}

func (s *store) volume(c *cluster) string { return filepath.Join(s.data, c.Name()) }

func (s *store) domain() string { return fmt.Sprintf("%s.%s.%s", s.service.name, s.namespace, zone) }

// nameOf returns the DNS name of a cluster's replica.
func (s *store) nameOf(c *cluster) string {
	return fmt.Sprintf("%s.%s.%s", replicaName, c.Name(), s.domain())
}

// bash returns the command line of a verb of the recipe in a pod. Programs do not run as root, which some of them refuse.
func (s *store) bash(p *pod, args ...string) (program string, arguments []string) {
	names := make([]string, 0, len(s.bed.all()))
	for _, c := range s.bed.all() {
		names = append(names, s.nameOf(c))
	}
	return "unshare", append([]string{
		"--user", "--map-user=65534", "--map-group=65534", "--", "env",
		"CLUSTER=" + p.cluster.Name(), "SELF=" + s.nameOf(p.cluster), "NAMES=" + strings.Join(names, " "),
		"DOMAIN=" + s.domain(), "DATA=" + s.volume(p.cluster),
		"POD=" + s.bed.program("pod"), "ETCD=" + s.etcd,
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
	err := pods.Delete(t.Context(), replicaName, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	if !apierrors.IsNotFound(err) {
		must(t, err)
		eventually(t, "the Pod to go", func(ctx context.Context) error {
			if _, err := pods.Get(ctx, replicaName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
		s.fillers++ // another pod takes the next address
		c.pod(t, podSpec{namespace: s.namespace, name: fmt.Sprintf("filler-%d", s.fillers)})
	}
	p := c.pod(t, podSpec{namespace: s.namespace, name: replicaName, subdomain: s.service.name, app: s.service.name})
	p.setReady(t, false)
	s.replicas[c] = &replica{pod: p}
}

// start starts the programs of a cluster's replica.
func (s *store) start(t testing.TB, c *cluster) {
	p := s.replicas[c].pod
	program, arguments := s.bash(p, "run")
	r := p.supervise(t, p.spec(program, arguments...))
	s.replicas[c] = r
	t.Cleanup(func() {
		if s.replicas[c] == r {
			s.crash(t, c)
		}
	})
}

// stop stops the programs of a cluster's replica in an orderly way, and removes its network.
func (s *store) stop(t testing.TB, c *cluster) {
	r := s.replicas[c]
	must(t, r.end())
	must(t, killAll(r.Namespace))
	must(t, r.Namespace.Close())
	s.replicas[c] = nil
}

// crash kills the programs of a cluster's replica, and removes its network.
func (s *store) crash(t testing.TB, c *cluster) {
	must(t, killAll(s.replicas[c].Namespace))
	s.stop(t, c)
}

// killAll kills all processes in a network namespace, and waits until they are gone.
func killAll(n *network.Namespace) error {
	own, err := os.Readlink(n.Path())
	if err != nil {
		return err
	}
	for found := true; found; {
		found = false
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return err
		}
		for _, entry := range entries {
			pid, err := strconv.Atoi(entry.Name())
			if err != nil {
				continue
			}
			if link, err := os.Readlink(filepath.Join("/proc", entry.Name(), "ns/net")); err != nil || link != own {
				continue // it belongs to another user, or has ended
			}
			found = true
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return nil
}

// write starts the writer in a cluster without the leader, and waits until writes are acknowledged.
func (s *store) write(t testing.TB, leader *cluster) {
	for _, c := range s.bed.all() {
		if c != leader {
			s.client = s.clients[c]
			break
		}
	}
	client := s.client
	t.Cleanup(func() { must(t, killAll(client.Namespace)) }) // the processes that the writer has started
	program, arguments := s.bash(client, "writer", fmt.Sprint(s.next))
	s.writer = &stream{client.run(t, program, arguments...)}
	s.awaitWrites(t)
}

// acknowledged returns the writes that were acknowledged since a time.
func (s *store) acknowledged(t testing.TB, since time.Time) tally.Attempts {
	return slices.DeleteFunc(s.writer.since(t, since), func(a tally.Attempt) bool { return a.Failure != "" })
}

// awaitWrites waits for new acknowledged writes.
func (s *store) awaitWrites(t testing.TB) {
	now := time.Now()
	eventually(t, "acknowledged writes", func(context.Context) error {
		if found := len(s.acknowledged(t, now)); found < rounds {
			return fmt.Errorf("there are %d since %s", found, now.Format(time.TimeOnly))
		}
		return nil
	})
}

// stopWriting stops the writer, and returns the longest time between two acknowledged writes.
func (s *store) stopWriting(t testing.TB) (longest time.Duration) {
	must(t, s.writer.Kill())
	must(t, killAll(s.client.Namespace))
	all, acknowledged := s.writer.since(t, time.Time{}), s.acknowledged(t, time.Time{})
	last, err := strconv.Atoi(all[len(all)-1].Who)
	must(t, err)
	s.next, s.written = last+2, append(s.written, acknowledged...) // the writer may have written one more number
	for i, write := range acknowledged[1:] {
		longest = max(longest, write.At.Sub(acknowledged[i].At))
	}
	return longest
}
