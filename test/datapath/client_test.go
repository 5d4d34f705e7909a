// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// lossless is how long a connection may take where none may be lost: longer than a resolver, or TCP, needs to send
// again what a busy machine dropped.
const lossless = 15 * time.Second

// connect makes connections from the pod, each of which resolves the name anew.
func (p *pod) connect(ctx context.Context, count int, timeout time.Duration, network, address string) (
	tally.Attempts, error,
) {
	out, err := p.command(ctx, p.cluster.bed.program("pod"), "connect", "-network", network, "-timeout", timeout.String(),
		"-count", strconv.Itoa(count), address)
	if err != nil {
		return nil, err
	}
	return tally.Read(out)
}

// settled waits until exactly these pods answer, and none of the connections is lost. It returns how long that took.
func (p *pod) settled(t testing.TB, network, address string, by ...*pod) time.Duration {
	want := identities(by)
	return eventually(t, fmt.Sprintf("%s reaches %s at %s over %s", p.identity(), want, address, network),
		func(ctx context.Context) error {
			counted, err := p.connect(ctx, 12*len(by), 5*time.Second, network, address)
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
	counted, err := p.connect(t.Context(), count, lossless, network, address)
	must(t, err)
	t.Logf("%s at %s over %s: %s", p.identity(), address, network, counted)
	if counted.Lost() > 0 || !slices.Equal(counted.Who(), identities(by)) {
		t.Errorf("connections were lost, or others answered than %v: %v", identities(by), counted.Answers())
	}
	return counted
}

// stream is a client that goes on. Its log has its attempts.
type stream struct{ *process.Process }

// connecting makes connections from the pod, one after the other, or asks over one, until the test ends.
func (p *pod) connecting(t testing.TB, timeout time.Duration, args ...string) *stream {
	args = append([]string{"connect", "-timeout", timeout.String()}, args...)
	return &stream{p.run(t, p.cluster.bed.program("pod"), args...)}
}

// since are the attempts from a time on: those that began then, or that ended if the client does not know more.
func (s *stream) since(t testing.TB, start time.Time) tally.Attempts {
	attempts, err := tally.Read(s.LogTail(math.MaxInt))
	must(t, err)
	return slices.DeleteFunc(attempts, func(a tally.Attempt) bool { return a.At.Before(start) })
}

// next are so many attempts from now on, or some more.
func (s *stream) next(t testing.TB, count int) (attempts tally.Attempts) {
	t.Helper()
	now := time.Now()
	eventually(t, fmt.Sprintf("%d attempts", count), func(context.Context) error {
		if attempts = s.since(t, now); len(attempts) < count {
			return fmt.Errorf("there are %d", len(attempts))
		}
		return nil
	})
	return attempts
}

// watch makes connections, one after the other, that end after a time.
func (p *pod) watch(t testing.TB, timeout time.Duration, address string) *stream {
	return p.connecting(t, timeout, "-network", "tcp4", address)
}

// intact fails if a connection since a time was lost while something was done.
func (s *stream) intact(t testing.TB, since time.Time, what string) {
	t.Helper()
	counted := s.since(t, since)
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
		attempts := s.since(t, start)
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

// stays fails if questions over an open connection are answered by another cluster, or by none.
func (s *stream) stays(t testing.TB, cluster *cluster, what string) {
	t.Helper()
	if asked := s.next(t, 50); asked.Clusters()[cluster.Name()] != len(asked) {
		t.Errorf("%s: questions over an open connection to %s: %s", what, cluster.Name(), asked)
	}
}

// keepWith opens connections, or sockets whose datagrams are one flow, until one is answered by the cluster.
func (p *pod) keepWith(t testing.TB, cluster *cluster, network, address string) *stream {
	t.Helper()
	for range 100 {
		s := p.connecting(t, lossless, "-network", network, "-keep", address)
		if s.next(t, 1).Clusters()[cluster.Name()] > 0 {
			return s
		}
		must(t, s.Kill())
	}
	t.Fatalf("none of 100 connections to %s was answered by %s", address, cluster.Name())
	return nil
}
