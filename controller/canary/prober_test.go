// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
)

// serveOne serves one connection, and returns the other end.
func serveOne(t *testing.T, serve func(net.Conn)) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		serve(there)
	}()
	return here
}

// TestOutcome: what a connection shows, and when.
func TestOutcome(t *testing.T) {
	canary := func(cluster string) func(net.Conn) {
		return func(conn net.Conn) { serve(conn, cluster, "key") }
	}
	silent := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	for _, row := range []struct {
		name  string
		dial  func(ctx context.Context) (net.Conn, error)
		want  liveness.Outcome
		after time.Duration
	}{
		{"answered", func(context.Context) (net.Conn, error) {
			return serveOne(t, canary("west")), nil
		}, liveness.Answered, 0},
		{"answered late", func(context.Context) (net.Conn, error) {
			return serveOne(t, func(conn net.Conn) {
				<-time.After(1900 * time.Millisecond)
				canary("west")(conn)
			}), nil
		}, liveness.Answered, 1900 * time.Millisecond},
		{"another cluster", func(context.Context) (net.Conn, error) {
			return serveOne(t, canary("west2")), nil
		}, liveness.Impaired, 0},
		{"a program that does not know the key", func(context.Context) (net.Conn, error) {
			return serveOne(t, func(conn net.Conn) { serve(conn, "west", "another key") }), nil
		}, liveness.Impaired, 0},
		{"the answer to another probe", func(context.Context) (net.Conn, error) {
			return serveOne(t, func(conn net.Conn) {
				_, _ = io.ReadFull(conn, make([]byte, size))
				_, _ = conn.Write(answerOf("west", "key", asking()))
			}), nil
		}, liveness.Impaired, 0},
		{"another program", func(context.Context) (net.Conn, error) {
			return serveOne(t, func(conn net.Conn) {
				_, _ = io.ReadFull(conn, make([]byte, size))
				_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			}), nil
		}, liveness.Impaired, 0},
		{"no answer", func(context.Context) (net.Conn, error) {
			return serveOne(t, silent), nil
		}, liveness.Impaired, answerWithin},
		{"the first packet only", func(context.Context) (net.Conn, error) {
			return serveOne(t, func(conn net.Conn) {
				asked := make([]byte, size)
				_, _ = io.ReadFull(conn, asked)
				_, _ = conn.Write(answerOf("west", "key", asked)[:1400])
				silent(conn)
			}), nil
		}, liveness.Impaired, answerWithin},
		{"nothing large gets there", func(context.Context) (net.Conn, error) {
			return serveOne(t, func(conn net.Conn) {
				_, _ = io.ReadFull(conn, make([]byte, 1400))
				<-time.After(time.Minute)
			}), nil
		}, liveness.Impaired, answerWithin},
		{"refused", func(context.Context) (net.Conn, error) {
			return nil, &net.OpError{Err: syscall.ECONNREFUSED}
		}, liveness.Impaired, 0},
		{"no route", func(context.Context) (net.Conn, error) {
			return nil, &net.OpError{Err: syscall.EHOSTUNREACH}
		}, liveness.Unanswered, 0},
		{"no connection", func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, liveness.Unanswered, connectWithin},
		{"its timer is late", func(context.Context) (net.Conn, error) {
			<-time.After(connectWithin + lateBy + 1)
			return nil, context.DeadlineExceeded
		}, liveness.Void, connectWithin + lateBy + 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				probed := &record{}
				p := &Prober{Tracker: probed, began: time.Now(), Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return row.dial(ctx)
				}}
				go p.watch(t.Context())
				synctest.Wait()
				p.probe(t.Context(), target{"west", "10.1.0.1:8081", "key"})
				got := probed.probes[0]
				if took := got.Ended.Sub(got.Began); got.Outcome != row.want || took != row.after {
					t.Errorf("got %v after %s, want %v after %s", got.Outcome, took, row.want, row.after)
				}
				<-time.After(2 * time.Minute) // until all ends
			})
		})
	}
}

// TestStarved: what fails while the process is starved shows nothing, and what is answered does.
func TestStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probed := &record{}
		p := &Prober{Tracker: probed, began: time.Now()}
		for _, answered := range []bool{false, true} {
			p.Dial = func(context.Context, string, string) (net.Conn, error) {
				<-time.After(time.Millisecond)
				p.late.Add(int64(lateBy) + 1)
				if answered {
					return serveOne(t, func(conn net.Conn) { serve(conn, "west", "key") }), nil
				}
				return nil, errors.New("no route")
			}
			p.probe(t.Context(), target{"west", "10.1.0.1:8081", "key"})
		}
		if probed.probes[0].Outcome != liveness.Void || probed.probes[1].Outcome != liveness.Answered {
			t.Errorf("got %v", probed.probes)
		}
	})
}

// A record is a Tracker.
type record struct {
	mu     sync.Mutex
	offers []string
	probes []liveness.Probe
	// doubtful is what Probed returns.
	doubtful bool
}

func (r *record) Offer(cluster string, canaries []Canary) {
	r.offers = append(r.offers, cluster+" "+Encode(canaries))
}

func (r *record) Probed(p liveness.Probe) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probes = append(r.probes, p)
	return r.doubtful
}

func (r *record) since(moment time.Time) (count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.probes {
		if p.Began.After(moment) {
			count++
		}
	}
	return count
}

// A fakeMember is a Member.
type fakeMember struct {
	cluster, text string
	unread        bool
	cidrs         []netip.Prefix
}

func (m *fakeMember) Cluster() string          { return m.cluster }
func (m *fakeMember) Canaries() (string, bool) { return m.text, !m.unread }
func (m *fakeMember) CanaryKey() string        { return "key" }
func (m *fakeMember) CIDRs() []netip.Prefix    { return m.cidrs }

// everywhere are the ranges of a member that is not confined.
var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}

// TestRate: each canary is probed each second, in doubt twice, and above 256 each in its turn. It ends at once.
func TestRate(t *testing.T) {
	for _, row := range []struct {
		members, canaries, want int
		doubtful                bool
	}{
		{0, 0, 0, false},
		{1, 1, 1, false},
		{1, 2, 2, false},
		{10, 3, 30, false},
		{128, 2, 256, false},
		{511, 2, 256, false},
		{1, 2, 4, true},
		{10, 3, 60, true},
		{128, 2, 256, true},
	} {
		t.Run(fmt.Sprint(row.members, " with ", row.canaries, " ", row.doubtful), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var members []Member
				for i := range row.members {
					var canaries []Canary
					for j := range row.canaries {
						address := netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(j)})
						canaries = append(canaries, Canary{netip.AddrPortFrom(address, 8081), ""})
					}
					members = append(members, &fakeMember{cluster: fmt.Sprint("member-", i), text: Encode(canaries), cidrs: everywhere})
				}
				probed := &record{doubtful: row.doubtful}
				p := &Prober{
					Members: func() []Member { return members }, Tracker: probed,
					Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
						<-ctx.Done()
						return nil, ctx.Err()
					},
				}
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { p.Run(ctx) })
				<-time.After(10 * time.Second)
				began := time.Now()
				<-time.After(time.Minute)
				if got := float64(probed.since(began)) / 60; got < 0.96*float64(row.want) || got > 1.02*float64(row.want) {
					t.Errorf("%.2f probes a second, want %d", got, row.want)
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

// TestOffers: the Tracker gets what a member may offer, each time that it changes, and that it offers nothing after a
// while.
func TestOffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		west, north := &fakeMember{cluster: "west", unread: true}, &fakeMember{cluster: "north"}
		members, offered := []Member{west, north}, &record{}
		p := &Prober{Members: func() []Member { return members }, Tracker: offered, offered: map[string]offer{}}
		expect := func(what string, targets int, want ...string) {
			t.Helper()
			got := p.targets(t.Context())
			if len(got) != targets || fmt.Sprint(offered.offers) != fmt.Sprint(want) {
				t.Errorf("%s: %d targets after %q, want %d after %q", what, len(got), offered.offers, targets, want)
			}
			offered.offers = nil
		}
		expect("nothing was read of west, and north has none", 0)
		<-time.After(forgetAfter)
		expect("north has none for a while", 0, "north ")
		expect("nothing changed", 0)
		west.unread, west.text = false, "10.1.0.1:8081=a,10.2.0.1:8081=b"
		expect("the ranges of west are unknown", 0)
		<-time.After(forgetAfter)
		expect("they are unknown for a while", 0, "west ")
		west.cidrs = everywhere
		expect("two canaries", 2, "west 10.1.0.1:8081=a,10.2.0.1:8081=b")
		expect("nothing changed", 2)
		west.cidrs = []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16")}
		expect("it is confined", 1, "west 10.2.0.1:8081=b")
		west.text = ""
		expect("it has none", 0)
		<-time.After(forgetAfter - 1)
		expect("it has none for a moment", 0)
		west.text = "10.2.0.2:8081"
		expect("it has another", 1, "west 10.2.0.2:8081")
		west.text = "10.2.0.1:22"
		expect("it is invalid", 0)
		<-time.After(forgetAfter)
		expect("it is invalid for a while", 0, "west ")
		west.text = "10.2.0.2:8081"
		expect("it is valid", 1, "west 10.2.0.2:8081")
		members = members[1:]
		expect("it left", 0)
		members = append(members, west)
		expect("it is back", 1, "west 10.2.0.2:8081")
		members = []Member{north, &fakeMember{cluster: "west", text: west.text, cidrs: west.cidrs}}
		expect("it left and joined between", 1, "west 10.2.0.2:8081")
	})
}

// TestServe: a canary over real sockets, which answers nothing but probes.
func TestServe(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { Serve(ctx, listener, "west", func() string { return "key" }) })
	probed := &record{}
	p := &Prober{Tracker: probed, began: time.Now(), Dial: (&net.Dialer{}).DialContext}
	address := listener.Addr().String()
	for range 100 {
		p.probe(t.Context(), target{"west", address, "key"})
	}
	for _, each := range probed.probes {
		if each.Outcome != liveness.Answered {
			t.Fatalf("got %v", each)
		}
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), size/16)); err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(conn); len(text) > 0 {
		t.Errorf("it answers %q", text)
	}
	open, err := net.Dial("tcp", address) // it asks nothing, and does not keep the canary from ending
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	stop()
	serving.Wait()
	p.probe(t.Context(), target{"west", address, "key"})
	if got := probed.probes[100].Outcome; got != liveness.Impaired {
		t.Errorf("a canary that ended: got %v, want that it refuses", got)
	}
}

// TestSilentConnections: a client that holds as many connections as it can does not keep others from being answered.
func TestSilentConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { Serve(ctx, listener, "west", func() string { return "key" }) })
	defer serving.Wait()
	defer stop()
	address := listener.Addr().String()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for i := range atOnce + 1 {
		conn, err := from.DialContext(ctx, "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i == atOnce { // the last one is closed at once, so the others were accepted
			_, _ = conn.Read(make([]byte, 1))
		}
	}
	probed := &record{}
	p := &Prober{Tracker: probed, began: time.Now(), Dial: (&net.Dialer{}).DialContext}
	p.probe(t.Context(), target{"west", address, "key"})
	if got := probed.probes[0].Outcome; got != liveness.Answered {
		t.Errorf("got %v, want an answer", got)
	}
}

// BenchmarkProbe is one probe, both ends together, over the loopback device.
func BenchmarkProbe(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	go Serve(ctx, listener, "west", func() string { return "key" })
	p := &Prober{Tracker: &record{}, began: time.Now(), Dial: (&net.Dialer{}).DialContext}
	t := target{"west", listener.Addr().String(), "key"}
	b.ReportAllocs()
	for b.Loop() {
		p.probe(ctx, t)
	}
}
