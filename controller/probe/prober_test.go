// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
)

// TestOutcome: the outcome of a connection, and when it is known. A failure while the process is starved shows nothing; an
// answer counts even then.
func TestOutcome(t *testing.T) {
	target := func(cluster string) func(net.Conn) {
		return func(conn net.Conn) { serve(conn, cluster, "key") }
	}
	silent := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	says := func(answer []byte) func(net.Conn) {
		return func(conn net.Conn) {
			_, _ = io.ReadFull(conn, make([]byte, size))
			_, _ = conn.Write(answer)
		}
	}
	fails := func(after time.Duration, err error) func(context.Context, *Prober) error {
		return func(context.Context, *Prober) error { <-time.After(after); return err }
	}
	starved := func(err error) func(context.Context, *Prober) error {
		return func(_ context.Context, p *Prober) error { p.late.Add(int64(lateBy) + 1); return err }
	}
	for _, row := range []struct {
		name  string
		dial  func(context.Context, *Prober) error // nil for a connection to what serves
		serve func(net.Conn)
		want  liveness.Outcome
		after time.Duration
	}{
		{"answered", nil, target("west"), liveness.Answered, 0},
		{"answered late", nil, func(conn net.Conn) {
			<-time.After(1900 * time.Millisecond)
			target("west")(conn)
		}, liveness.Answered, 1900 * time.Millisecond},
		{"another cluster", nil, target("west2"), liveness.Impaired, 0},
		{"a program that does not know the key", nil, func(conn net.Conn) { serve(conn, "west", "another key") }, liveness.Impaired, 0},
		{"the answer to another probe", nil, says(answerOf("west", "key", asking())), liveness.Impaired, 0},
		{"another program", nil, says([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")), liveness.Impaired, 0},
		{"no answer", nil, silent, liveness.Impaired, answerWithin},
		{"the first packet only", nil, func(conn net.Conn) {
			asked := make([]byte, size)
			_, _ = io.ReadFull(conn, asked)
			_, _ = conn.Write(answerOf("west", "key", asked)[:1400])
			silent(conn)
		}, liveness.Impaired, answerWithin},
		{"refused", fails(0, &net.OpError{Err: syscall.ECONNREFUSED}), nil, liveness.Impaired, 0},
		{"its process has no file left", fails(0, &net.OpError{Err: os.NewSyscallError("socket", syscall.EMFILE)}), nil, liveness.Impaired, 0},
		{"no route", fails(0, &net.OpError{Err: syscall.EHOSTUNREACH}), nil, liveness.Unanswered, 0},
		{"no connection", func(ctx context.Context, _ *Prober) error { <-ctx.Done(); return ctx.Err() }, nil, liveness.Unanswered, connectWithin},
		{"its timer is late", fails(connectWithin+lateBy+1, context.DeadlineExceeded), nil, liveness.Impaired, connectWithin + lateBy + 1},
		{"starved", starved(errors.New("no route")), nil, liveness.Impaired, 0},
		{"answered, and starved", starved(nil), target("west"), liveness.Answered, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &Prober{began: time.Now()}
				p.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
					if row.dial != nil {
						if err := row.dial(ctx, p); err != nil {
							return nil, err
						}
					}
					here, there := net.Pipe()
					go func() {
						defer there.Close()
						row.serve(there)
					}()
					return here, nil
				}
				go p.watch(t.Context())
				synctest.Wait()
				got := p.probe(t.Context(), ofWest)
				if took := got.Ended.Sub(got.Began); got.Outcome != row.want || took != row.after {
					t.Errorf("got %v after %s, want %v after %s", got.Outcome, took, row.want, row.after)
				}
				<-time.After(2 * time.Minute) // until all ends
			})
		})
	}
}

// ofWest is a probe target that a test probes.
var ofWest = liveness.Request{Cluster: "west", Address: netip.MustParseAddrPort("10.1.0.1:8081"), Key: "key"}

// TestRate: each of up to 192 probe targets is probed every 0.75 s, and more probe targets less often. Run ends at once.
func TestRate(t *testing.T) {
	for _, row := range []struct {
		targets int
		want    float64
	}{{0, 0}, {1, 1 / 0.75}, {2, 2 / 0.75}, {30, 30 / 0.75}, {192, 256}, {1022, 256}} {
		t.Run(fmt.Sprint(row.targets), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var probed atomic.Int64
				p := &Prober{
					Requests: func() []liveness.Request { return make([]liveness.Request, row.targets) },
					Probed: func(_ string, probe liveness.Probe) {
						if probe.Ended.Sub(probe.Began) == connectWithin {
							probed.Add(1)
						}
					},
					Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
						<-ctx.Done()
						return nil, ctx.Err()
					},
				}
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { p.Run(ctx) })
				<-time.After(10 * time.Second)
				before := probed.Load()
				<-time.After(time.Minute)
				if got := float64(probed.Load()-before) / 60; got < 0.96*row.want || got > 1.02*row.want {
					t.Errorf("%.2f probes a second, want %.2f", got, row.want)
				}
				ending := time.Now()
				stop()
				running.Wait()
				if took := time.Since(ending); took > 0 {
					t.Errorf("it ended after %s", took)
				}
			})
		})
	}
}

// serving starts a probe target of west over real sockets, and returns it with a function that ends it.
func serving(t *testing.T) (at liveness.Request, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { Serve(ctx, listener, "west", func() string { return "key" }) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return liveness.Request{Cluster: "west", Address: netip.MustParseAddrPort(listener.Addr().String()), Key: "key"}, stop
}

// connected is a connection to a probe target.
func connected(t *testing.T, dialer net.Dialer, to liveness.Request) net.Conn {
	t.Helper()
	conn, err := dialer.DialContext(t.Context(), "tcp", to.Address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestServe: a probe target answers nothing but probes.
func TestServe(t *testing.T) {
	target, stop := serving(t)
	p := &Prober{began: time.Now(), Dial: (&net.Dialer{}).DialContext}
	for range 100 {
		if got := p.probe(t.Context(), target); got.Outcome != liveness.Answered {
			t.Fatalf("got %v", got)
		}
	}
	conn := connected(t, net.Dialer{}, target)
	if _, err := conn.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), size/16)); err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(conn); len(text) > 0 {
		t.Errorf("it answers %q", text)
	}
	connected(t, net.Dialer{}, target) // it asks nothing, and does not keep the probe target from ending
	stop()
	if got := p.probe(t.Context(), target).Outcome; got != liveness.Impaired {
		t.Errorf("a target that ended: got %v, want that it refuses", got)
	}
}

// TestSilentConnections: a client that holds as many connections as it can does not keep others from being answered.
func TestSilentConnections(t *testing.T) {
	target, _ := serving(t)
	oldest := connected(t, net.Dialer{}, target)
	for range atOnce {
		connected(t, net.Dialer{}, target)
	}
	_, _ = oldest.Read(make([]byte, 1)) // it is closed once all others are accepted
	p := &Prober{began: time.Now(), Dial: (&net.Dialer{}).DialContext}
	if got := p.probe(t.Context(), target).Outcome; got != liveness.Answered {
		t.Errorf("got %v, want an answer", got)
	}
}
