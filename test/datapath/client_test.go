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

// lossless is the timeout of connections none of which may be lost: longer than a resolver or TCP needs to retransmit
// packets that a busy machine dropped.
const lossless = 15 * time.Second

// connect makes connections from the pod. Each one resolves the name again.
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

// settled waits until exactly these pods answer, and no connection is lost. It returns the time that this took.
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

// reaches waits until these pods answer, and then makes count connections: no other pod may answer, and no connection
// may be lost.
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

// stream is a client that runs until the test ends. Its log has its attempts.
type stream struct{ *process.Process }

// connecting makes connections from the pod, one after the other, or with -keep asks over one, until the test ends.
func (p *pod) connecting(t testing.TB, timeout time.Duration, args ...string) *stream {
	args = append([]string{"connect", "-timeout", timeout.String()}, args...)
	return &stream{p.run(t, p.cluster.bed.program("pod"), args...)}
}

// since returns the attempts that began after a time, or that ended after it if the client does not record their beginning.
func (s *stream) since(t testing.TB, start time.Time) tally.Attempts {
	attempts, err := tally.Read(s.LogTail(math.MaxInt))
	must(t, err)
	return slices.DeleteFunc(attempts, func(a tally.Attempt) bool { return a.At.Before(start) })
}

// next waits for at least this many attempts from now on, and returns them.
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

// watch makes connections, one after the other, with a timeout.
func (p *pod) watch(t testing.TB, timeout time.Duration, address string) *stream {
	return p.connecting(t, timeout, "-network", "tcp4", address)
}

// intact fails if a connection was lost since a time; what was done meanwhile is in the message.
func (s *stream) intact(t testing.TB, since time.Time, what string) {
	t.Helper()
	counted := s.since(t, since)
	t.Logf("%s: %s, in %s", what, counted, seconds(time.Since(since)))
	if counted.Lost() > 0 {
		t.Errorf("%s: connections were lost", what)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// enough is the number of consecutive attempts that show that a cluster gets no traffic: they take longer than
// kube-proxy waits between two syncs, because an attempt takes at least 10 ms.
const enough = 150

// only waits until all of these clusters answer, no other cluster does, and no connection is lost, for enough attempts.
// It returns the time from start to the last change: the first answer of one of these clusters, the last answer of
// another cluster, or the last loss.
func (s *stream) only(t testing.TB, start time.Time, clusters ...string) time.Duration {
	var since time.Duration
	eventually(t, fmt.Sprintf("only %v to answer", clusters), func(context.Context) error {
		attempts := s.since(t, start)
		begin := len(attempts) // of the matching attempts at the end
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

// stays fails unless the cluster answers all requests over an open connection.
func (s *stream) stays(t testing.TB, cluster *cluster, what string) {
	t.Helper()
	if asked := s.next(t, 50); asked.Clusters()[cluster.Name()] != len(asked) {
		t.Errorf("%s: questions over an open connection to %s: %s", what, cluster.Name(), asked)
	}
}

// keepWith opens connections, or sockets whose datagrams are one flow, until the cluster answers on one of them.
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
