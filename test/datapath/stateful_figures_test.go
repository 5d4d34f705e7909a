// SPDX-License-Identifier: Apache-2.0

//go:build stateful

package datapath

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// writer writes numbers, one at a time, and remembers those that were acknowledged.
type writer struct {
	mu           sync.Mutex
	next         int
	acknowledged []write
	failed       []write
	client       *exec.Cmd
	pod          *pod
	ended        chan struct{}
}

type write struct {
	n  int
	at time.Time
}

// write starts the writer in a cluster that is not the leader's, and returns once writes are acknowledged.
func (s *store) write(t testing.TB, leader *cluster) {
	t.Helper()
	for _, c := range s.bed.all() {
		if c != leader {
			s.client = s.clients[c]
			break
		}
	}
	program, arguments := s.bash(s.client, "writer", fmt.Sprint(s.writer.next))
	line := s.client.Command(s.client.resolvConf, program, arguments...)
	w := s.writer
	w.pod, w.client, w.ended = s.client, exec.Command(line[0], line[1:]...), make(chan struct{})
	output, err := w.client.StdoutPipe()
	must(t, err)
	must(t, process.StartTied(w.client))
	go w.read(output)
	t.Cleanup(func() { w.stop(t) })
	w.await(t, time.Now(), rounds)
}

func (w *writer) read(output io.Reader) {
	defer close(w.ended)
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		var n int
		var result string
		if _, err := fmt.Sscan(scanner.Text(), &n, &result); err != nil {
			continue
		}
		w.mu.Lock()
		w.next = n + 2 // which the writer may write when it is stopped
		if done := (write{n, time.Now()}); result == "ok" {
			w.acknowledged = append(w.acknowledged, done)
		} else {
			w.failed = append(w.failed, done)
		}
		w.mu.Unlock()
	}
}

// stop ends the writer. What it has written stays.
func (w *writer) stop(t testing.TB) {
	t.Helper()
	if w.client == nil {
		return
	}
	must(t, killAll(w.pod.Namespace))
	<-w.ended
	_ = w.client.Wait()
	w.client = nil
}

// within are those of a time.
func within(writes []write, from, to time.Time) (selected []write) {
	for _, w := range writes {
		if w.at.After(from) && !w.at.After(to) {
			selected = append(selected, w)
		}
	}
	return selected
}

// await waits for so many acknowledged writes after a time.
func (w *writer) await(t testing.TB, after time.Time, count int) {
	t.Helper()
	(&store{}).await(t, "acknowledged writes", func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if found := len(within(w.acknowledged, after, time.Now())); found < count {
			return fmt.Errorf("there are %d since %s", found, after.Format(time.TimeOnly))
		}
		return nil
	})
}

// figure is what was seen in a time.
type figure struct {
	took                    time.Duration
	writes, failed          int
	pause                   time.Duration // the longest without an acknowledged write
	spread                  time.Duration // the longest until a new address is answered in all other clusters
	addresses               int           // that are new
	lookups, withoutAddress int
}

func (s *store) figure(from, to time.Time) figure {
	s.writer.mu.Lock()
	acknowledged, failed := within(s.writer.acknowledged, from, to), within(s.writer.failed, from, to)
	s.writer.mu.Unlock()
	f := figure{took: to.Sub(from), writes: len(acknowledged), failed: len(failed)}
	before := from
	for _, next := range append(acknowledged, write{at: to}) {
		f.pause, before = max(f.pause, next.at.Sub(before)), next.at
	}
	s.names.figure(&f, from, to)
	return f
}

// names looks the replicas' names up in all other clusters, again and again.
type names struct {
	store   *store
	mu      sync.Mutex
	changes []change
	lookups []lookup
}

// change is a new address in the Pod of a replica.
type change struct {
	cluster *cluster
	at      time.Time
	address netip.Addr
}

type lookup struct {
	from, of *cluster
	at       time.Time // of the answer
	address  netip.Addr
}

func watchNames(t testing.TB, s *store) *names {
	t.Helper()
	n := &names{store: s}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	t.Cleanup(func() { cancel(); group.Wait() })
	for _, from := range s.bed.all() {
		for _, of := range s.bed.all() {
			if from == of {
				continue
			}
			var connection net.Conn
			must(t, s.clients[from].Do(func() (err error) {
				connection, err = net.Dial("udp", net.JoinHostPort(from.dns, "53"))
				return err
			}))
			group.Go(func() {
				defer connection.Close()
				for ticker := time.NewTicker(25 * time.Millisecond); ctx.Err() == nil; <-ticker.C {
					address := s.lookUp(connection, of)
					n.mu.Lock()
					n.lookups = append(n.lookups, lookup{from, of, time.Now(), address})
					n.mu.Unlock()
				}
			})
		}
	}
	return n
}

// lookUp returns the address that a DNS server has for the name of a replica; it is invalid where there is none.
func (s *store) lookUp(connection net.Conn, of *cluster) (address netip.Addr) {
	client := dns.Client{Timeout: 500 * time.Millisecond}
	reply, _, err := client.ExchangeWithConn(new(dns.Msg).SetQuestion(s.nameOf(of)+".", dns.TypeA),
		&dns.Conn{Conn: connection})
	if err != nil {
		return address
	}
	for _, rr := range reply.Answer {
		if a, ok := rr.(*dns.A); ok {
			address, _ = netip.AddrFromSlice(a.A.To4())
		}
	}
	return address
}

// expect waits in the background for the address of a Pod that is created next.
func (n *names) expect(t testing.TB, c *cluster) {
	t.Helper()
	watched, err := c.CoreV1().Pods(n.store.namespace).Watch(t.Context(),
		metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", replicaName).String()})
	must(t, err)
	go func() {
		defer watched.Stop()
		for event := range watched.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || pod.Status.PodIP == "" {
				continue
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			n.changes = append(n.changes, change{c, time.Now(), netip.MustParseAddr(pod.Status.PodIP)})
			return
		}
	}()
}

func (n *names) figure(f *figure, from, to time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lookups {
		if l.at.Before(from) || l.at.After(to) {
			continue
		}
		f.lookups++
		if !l.address.IsValid() {
			f.withoutAddress++
		}
	}
	for _, changed := range n.changes {
		if changed.at.Before(from) || changed.at.After(to) {
			continue
		}
		f.addresses++
		for _, observer := range n.store.bed.all() {
			if observer == changed.cluster {
				continue
			}
			until := to // not before the end
			if i := slices.IndexFunc(n.lookups, func(l lookup) bool {
				return l.from == observer && l.of == changed.cluster && l.at.After(changed.at) && l.address == changed.address
			}); i >= 0 {
				until = n.lookups[i].at
			}
			f.spread = max(f.spread, until.Sub(changed.at))
		}
	}
}

// storeTable collects the figures of stores.
type storeTable struct{ rows []string }

func (s *storeTable) add(store, phase string, f figure) {
	cells := make([]string, 6)
	if f.took > 0 {
		cells[0] = seconds(f.took)
	}
	if f.lookups > 0 {
		cells[1], cells[2], cells[3] = fmt.Sprint(f.writes), fmt.Sprint(f.failed), seconds(f.pause)
		cells[5] = fmt.Sprintf("%d of %d", f.withoutAddress, f.lookups)
	}
	if f.addresses > 0 {
		cells[4] = fmt.Sprintf("%d ms", f.spread.Milliseconds())
	}
	s.rows = append(s.rows, fmt.Sprintf("| %s\t| %s\t| %s\t|", store, phase, strings.Join(cells, "\t| ")))
}

// String is the table as text that is Markdown, too.
func (s *storeTable) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| store\t| phase\t| took\t| writes\t| failed\t| longest pause\t| new address in DNS after\t| lookups without address\t|\n"+
		"| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|")
	for _, row := range s.rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush() // a strings.Builder never fails
	return b.String()
}
