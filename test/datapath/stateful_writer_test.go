// SPDX-License-Identifier: Apache-2.0

//go:build stateful

package datapath

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// writer writes numbers, one at a time, and remembers those that were acknowledged.
type writer struct {
	mu           sync.Mutex
	next         int
	acknowledged []write
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
		if result == "ok" {
			w.acknowledged = append(w.acknowledged, write{n, time.Now()})
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

// longest is the longest time between two acknowledged writes, the second of which was after a time.
func (w *writer) longest(after time.Time) (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.acknowledged[1:] {
		if at := w.acknowledged[i+1].at; at.After(after) {
			longest = max(longest, at.Sub(w.acknowledged[i].at))
		}
	}
	return longest
}

// await waits for so many acknowledged writes after a time.
func (w *writer) await(t testing.TB, after time.Time, count int) {
	t.Helper()
	(&store{}).await(t, "acknowledged writes", func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		found := 0
		for _, done := range w.acknowledged {
			if done.at.After(after) {
				found++
			}
		}
		if found < count {
			return fmt.Errorf("there are %d since %s", found, after.Format(time.TimeOnly))
		}
		return nil
	})
}
