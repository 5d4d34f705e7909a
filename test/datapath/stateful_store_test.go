// SPDX-License-Identifier: Apache-2.0

//go:build stateful

package datapath

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
)

// store is a workload that runs.
type store struct {
	workload
	service
	bed      *bed
	recipe   string // the file
	data     string // the folder of the volumes
	replicas map[*cluster]*storePod
	clients  map[*cluster]*pod
	client   *pod // in which the writer runs and verbs are called
	writer   *writer
	fillers  int
}

// storePod is the pod of a replica. Its programs are started again where they end, as a kubelet would.
type storePod struct {
	*pod
	cancel context.CancelFunc
	ended  chan error
}

// replicaName is the name of the replica in each cluster: that of the first pod of a StatefulSet.
const replicaName = "db-0"

func newStore(t testing.TB, b *bed, w workload) *store {
	t.Helper()
	recipe, err := filepath.Abs(filepath.Join("stateful", w.name+".bash"))
	must(t, err)
	namespace := b.namespace(t)
	s := &store{
		workload: w, bed: b, recipe: recipe, data: t.TempDir(), replicas: map[*cluster]*storePod{},
		clients: map[*cluster]*pod{}, writer: &writer{next: 1},
		service: service{
			namespace: namespace, name: "db", ports: w.ports,
			change: func(s *corev1.Service) {
				s.Spec.ClusterIP = corev1.ClusterIPNone
				s.Spec.PublishNotReadyAddresses = true // they are ready once they have found each other
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

// nameOf is the name of a cluster's replica in the set.
func (s *store) nameOf(c *cluster) string {
	return fmt.Sprintf("%s.%s.%s", replicaName, c.Name(), s.domain())
}

// bash is the command line of a verb of the recipe in a pod. The programs do not run as root, which some of them refuse.
func (s *store) bash(p *pod, args ...string) (program string, arguments []string) {
	names := make([]string, 0, len(s.bed.all()))
	for _, c := range s.bed.all() {
		names = append(names, s.nameOf(c))
	}
	return "unshare", append([]string{
		"--user", "--map-user=65534", "--map-group=65534", "--", "env",
		"CLUSTER=" + p.cluster.Name(), "SELF=" + s.nameOf(p.cluster), "NAMES=" + strings.Join(names, " "),
		"DOMAIN=" + s.domain(), "DATA=" + s.volume(p.cluster),
		"POD=" + s.bed.program("pod"), "ETCD=" + s.bed.paths[assets.Etcd],
		"bash", s.recipe,
	}, args...)
}

// tryVerb calls a verb of the recipe in the client's pod.
func (s *store) tryVerb(ctx context.Context, args ...string) (string, error) {
	program, arguments := s.bash(s.client, args...)
	return s.client.command(ctx, program, arguments...)
}

func (s *store) verb(t testing.TB, args ...string) string {
	t.Helper()
	out, err := s.tryVerb(t.Context(), args...)
	must(t, err)
	return out
}

// await waits for a state that stores may take minutes for on a busy machine.
func (s *store) await(t testing.TB, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for ticker := time.NewTicker(100 * time.Millisecond); ; {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// create creates the Pod of a cluster's replica, which gets another address than those before.
func (s *store) create(t testing.TB, c *cluster) {
	t.Helper()
	pods := c.CoreV1().Pods(s.namespace)
	err := pods.Delete(t.Context(), replicaName, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	if !apierrors.IsNotFound(err) {
		must(t, err)
		s.await(t, "the Pod to go", func(ctx context.Context) error {
			if _, err := pods.Get(ctx, replicaName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
		s.fillers++ // another pod gets the address
		c.pod(t, podSpec{namespace: s.namespace, name: fmt.Sprintf("filler-%d", s.fillers)})
	}
	r := &storePod{pod: c.pod(t, podSpec{
		namespace: s.namespace, name: replicaName, subdomain: s.service.name,
		labels: map[string]string{"app": s.service.name},
	})}
	r.setReady(t, false)
	s.replicas[c] = r
}

// start starts the programs of a cluster's replica.
func (s *store) start(t testing.TB, c *cluster) {
	t.Helper()
	r := s.replicas[c]
	program, arguments := s.bash(r.pod, "run")
	spec := r.spec(program, arguments...)
	spec.Name = s.workload.name + " in " + c.Name()
	spec.LogFile = filepath.Join(c.Directory(), "store-"+s.workload.name+".log")
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.ended = cancel, make(chan error, 1)
	go func() { r.ended <- keepRunning(ctx, spec) }()
	t.Cleanup(func() {
		if s.replicas[c] == r {
			s.crash(t, c)
		}
		if log, err := os.ReadFile(spec.LogFile); t.Failed() {
			t.Logf("the log of %s ends: %v\n%s", spec.Name, err, log[max(0, len(log)-4096):])
		}
	})
}

// keepRunning runs a program until ctx ends, and stops it then as a kubelet does.
func keepRunning(ctx context.Context, spec process.Spec) error {
	for {
		p, err := process.Start(spec)
		if err != nil {
			return err
		}
		select {
		case <-p.Done():
		case <-ctx.Done():
			return p.Stop(context.Background(), 20*time.Second)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil
		}
	}
}

// stop stops the programs of a cluster's replica as planned, and removes its network.
func (s *store) stop(t testing.TB, c *cluster) {
	t.Helper()
	r := s.replicas[c]
	r.cancel()
	must(t, <-r.ended)
	must(t, killAll(r.Namespace))
	must(t, r.Namespace.Close())
	s.replicas[c] = nil
}

// crash kills the programs of a cluster's replica, and removes its network.
func (s *store) crash(t testing.TB, c *cluster) {
	t.Helper()
	must(t, killAll(s.replicas[c].Namespace))
	s.stop(t, c)
}

// restart replaces a cluster's replica.
func (s *store) restart(t testing.TB, c *cluster) {
	t.Helper()
	s.stop(t, c)
	s.create(t, c)
	s.start(t, c)
}

// killAll kills all processes in a network namespace, and returns once they are gone.
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
				continue // another one's, or it has ended
			}
			found = true
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return nil
}
