// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// lossless is how long a connection may take where none may be lost: longer than a resolver, or TCP, needs to send
// again what a busy machine dropped.
const lossless = 15 * time.Second

// connect makes connections from the pod, each of which resolves the name anew.
func (p *pod) connect(t testing.TB, count int, network, address string) tally.Attempts {
	counted, err := p.tryConnect(t.Context(), count, network, address, "-timeout", lossless.String())
	must(t, err)
	return counted
}

func (p *pod) tryConnect(ctx context.Context, count int, network, address string, flags ...string) (made tally.Attempts, err error) {
	args := append([]string{"connect", "-network", network, "-count", strconv.Itoa(count)}, flags...)
	out, err := p.command(ctx, p.cluster.bed.program("pod"), append(args, address)...)
	if err != nil {
		return nil, err
	}
	return made, json.Unmarshal([]byte(out), &made)
}

// settled waits until exactly these pods answer, and none of the connections is lost. It returns how long that took.
func (p *pod) settled(t testing.TB, network, address string, by ...*pod) time.Duration {
	want := identities(by)
	return eventually(t, fmt.Sprintf("%s reaches %s at %s over %s", p.identity(), want, address, network),
		func(ctx context.Context) error {
			counted, err := p.tryConnect(ctx, 12*len(by), network, address, "-timeout", "5s")
			if err == nil && (counted.Lost() > 0 || !slices.Equal(counted.Who(), want)) {
				err = fmt.Errorf("%s answered: %v", counted, counted.Who())
			}
			return err
		})
}

func identities(pods []*pod) (who []string) {
	for _, p := range pods {
		who = append(who, p.identity())
	}
	slices.Sort(who)
	return who
}

// reaches waits until these pods answer, and then counts: none other may answer, and none of the connections may be
// lost.
func (p *pod) reaches(t testing.TB, count int, network, address string, by ...*pod) tally.Attempts {
	t.Helper()
	p.settled(t, network, address, by...)
	counted := p.connect(t, count, network, address)
	t.Logf("%s at %s over %s: %s", p.identity(), address, network, counted)
	if counted.Lost() > 0 || !slices.Equal(counted.Who(), identities(by)) {
		t.Errorf("connections were lost, or others answered than %v: %v", identities(by), counted.Answers())
	}
	return counted
}

// stream is a client that goes on, and what it has seen.
type stream struct {
	input  io.WriteCloser
	client *exec.Cmd
	fresh  *sync.Cond
	ended  chan struct{}

	mu       sync.Mutex
	attempts tally.Attempts
	err      error // why there will be no more
}

// stream starts a client whose attempts come as lines. Those that do not say when they began have ended when they come.
func (p *pod) stream(t testing.TB, program string, args ...string) *stream {
	line := p.Command(p.resolvConf, program, args...)
	s := &stream{client: exec.Command(line[0], line[1:]...), ended: make(chan struct{})}
	s.fresh = sync.NewCond(&s.mu)
	var err error
	s.input, err = s.client.StdinPipe()
	must(t, err)
	output, err := s.client.StdoutPipe()
	must(t, err)
	must(t, process.StartTied(s.client))
	go s.read(output)
	t.Cleanup(s.stop)
	return s
}

func (s *stream) read(output io.Reader) {
	defer close(s.ended)
	var err error
	for scanner := bufio.NewScanner(output); scanner.Scan() && err == nil; {
		attempt := tally.Attempt{At: time.Now()}
		if err = json.Unmarshal(scanner.Bytes(), &attempt); err == nil {
			s.mu.Lock()
			s.attempts = append(s.attempts, attempt)
			s.mu.Unlock()
			s.fresh.Broadcast()
		}
	}
	if err == nil {
		err = fmt.Errorf("the client ended: %w", io.EOF)
	}
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	s.fresh.Broadcast()
}

// stop ends the client. What it has seen stays.
func (s *stream) stop() {
	_ = s.client.Process.Kill()
	<-s.ended
	_ = s.client.Wait()
}

// since are the attempts that began at or after a time.
func (s *stream) since(start time.Time) tally.Attempts {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, _ := slices.BinarySearchFunc(s.attempts, start,
		func(a tally.Attempt, start time.Time) int { return a.At.Compare(start) })
	return slices.Clone(s.attempts[first:])
}

// next is the first attempt from the given index on.
func (s *stream) next(t testing.TB, index int) tally.Attempt {
	t.Helper()
	stop := time.AfterFunc(patience, s.stop)
	defer stop.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.attempts) <= index {
		if s.err != nil {
			t.Fatalf("attempt %d: %v", index, s.err)
		}
		s.fresh.Wait()
	}
	return s.attempts[index]
}

// watch makes connections from the pod, one after the other, until the test ends.
func (p *pod) watch(t testing.TB, network, address string) *stream {
	return p.watchWithin(t, lossless, network, address)
}

// watchWithin is watch for connections that may be lost: they end after a time.
func (p *pod) watchWithin(t testing.TB, timeout time.Duration, network, address string) *stream {
	return p.stream(t, p.cluster.bed.program("pod"), "watch", "-network", network, "-timeout", timeout.String(), address)
}

// intact fails if a connection since a time was lost while something was done.
func (s *stream) intact(t testing.TB, since time.Time, what string) {
	t.Helper()
	counted := s.since(since)
	t.Logf("%s: %s, in %s", what, counted, seconds(time.Since(since)))
	if counted.Lost() > 0 {
		t.Errorf("%s: connections were lost", what)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// enough is how many attempts in a row show that a cluster is left out: they take longer than kube-proxy waits between two
// syncs, as there is one in 10 ms at most.
const enough = 150

// only waits until the given clusters answer, all of them and no others, and nothing is lost, for a while. It returns
// how long after start the last of them answered for the first time, or one of the others for the last time, or the
// last connection was lost.
func (s *stream) only(t testing.TB, start time.Time, clusters ...string) time.Duration {
	var since time.Duration
	eventually(t, fmt.Sprintf("only %v to answer", clusters), func(context.Context) error {
		attempts := s.since(start)
		begin := len(attempts) // of the calm
		first := map[string]int{}
		for ; begin > 0; begin-- {
			attempt := attempts[begin-1]
			cluster, _, _ := strings.Cut(attempt.Who, "/")
			if attempt.Failure != "" || !slices.Contains(clusters, cluster) {
				break
			}
			first[cluster] = begin - 1
		}
		if begin == len(attempts) || len(first) != len(clusters) {
			return fmt.Errorf("since %s: %s", start.Format(time.TimeOnly), attempts)
		}
		latest := slices.Max(slices.Collect(maps.Values(first)))
		since = attempts[latest].At.Sub(start)
		if alike := len(attempts) - latest; alike < enough {
			return fmt.Errorf("it is so in %d attempts", alike)
		}
		return nil
	})
	return since
}

// connection is one that stays open, or a socket whose datagrams are one flow.
type connection struct {
	*stream
	asked int
}

// ask asks over the connection who is there.
func (c *connection) ask(t testing.TB) tally.Attempt {
	c.asked++
	_, err := io.WriteString(c.input, "\n")
	must(t, err)
	return c.next(t, c.asked)
}

// stays fails if questions over the connection are answered by another cluster, or by none.
func (c *connection) stays(t testing.TB, cluster *cluster, what string) {
	t.Helper()
	var asked tally.Attempts
	for range 50 {
		asked = append(asked, c.ask(t))
	}
	if asked.Clusters()[cluster.Name()] != 50 {
		t.Errorf("%s: 50 questions over an open connection to %s: %s", what, cluster.Name(), asked)
	}
}

// keepWith opens connections until one is answered by the cluster.
func (p *pod) keepWith(t testing.TB, cluster *cluster, network, address string) *connection {
	t.Helper()
	for range 100 {
		c := &connection{stream: p.stream(t, p.cluster.bed.program("pod"), "keep", "-network", network, "-timeout", lossless.String(), address)}
		if strings.HasPrefix(c.next(t, 0).Who, cluster.Name()+"/") {
			return c
		}
		c.stop()
	}
	t.Fatalf("none of 100 connections to %s was answered by %s", address, cluster.Name())
	return nil
}
