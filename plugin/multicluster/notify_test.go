// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	golog "log"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
)

// secondaries stand in for the transfer plugin.
type secondaries struct {
	plugin.Handler
	m     *Multicluster
	since time.Time
	takes time.Duration // to send one NOTIFY

	mu   sync.Mutex
	err  error
	sent []string
}

// Notify records the zone, the time, and the changes that the SOA record shows.
func (s *secondaries) Notify(zone string) error {
	s.mu.Lock()
	s.sent = append(s.sent, fmt.Sprintf("%s %v %d", zone, time.Since(s.since), s.m.index.Load().State().Serial-testTime))
	err := s.err
	s.mu.Unlock()
	<-time.After(s.takes)
	return err
}

// expect compares what was sent since the last call.
func (s *secondaries) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.sent)
	if !slices.Equal(s.sent, want) {
		t.Errorf("%s: NOTIFY was sent %q, want %q", what, s.sent, want)
	}
	s.sent, s.since = nil, time.Now()
}

// serveChange moves the serial by one.
func serveChange(t *testing.T, m *Multicluster) {
	t.Helper()
	x := m.index.Load()
	serial := x.State().Serial
	ip := fmt.Sprintf("10.42.%d.%d", byte(serial>>8), byte(serial))
	web := service{"web", recordtest.ClusterSetIP(ip, ""), nil}
	if x.Update(serial+1, build(&m.config, web)); x.State().Serial != serial+1 {
		t.Fatal("the serial did not move")
	}
}

func TestSecondariesAreNotifiedOfEveryChangeWithinLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newReversePlugin(demo...)
		x := m.index.Swap(nil)
		s := &secondaries{m: m, since: time.Now()}
		ctx, stop := context.WithCancel(t.Context())
		m.notifySecondaries(ctx, s)
		zones := func(text string) []string {
			return []string{reverse4 + text, testZone + text, reverse6 + text}
		}
		<-time.After(time.Hour + time.Second/2) // changes are between two looks at the serial
		s.expect(t, "before the first sync")
		m.index.Store(x)
		<-time.After(time.Hour)
		s.expect(t, "after the first sync", zones(" 500ms 0")...)

		serveChange(t, m)
		<-time.After(time.Hour)
		s.expect(t, "after a change", zones(" 500ms 1")...)
		m.index.Load().Update(testTime+9, nil)
		<-time.After(time.Hour)
		s.expect(t, "at rest")

		serveChange(t, m)
		<-time.After(2 * time.Second)
		serveChange(t, m)
		<-time.After(2 * time.Second)
		serveChange(t, m)
		<-time.After(time.Hour)
		s.expect(t, "after changes in the pause", slices.Concat(
			[]string{reverse4 + " 5.5s 4", reverse4 + " 500ms 2"},
			[]string{testZone + " 5.5s 4", testZone + " 500ms 2"},
			[]string{reverse6 + " 5.5s 4", reverse6 + " 500ms 2"})...)

		for range 600 {
			serveChange(t, m)
			<-time.After(100 * time.Millisecond)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if n := len(s.sent); n == 0 || n > 3*13 || !strings.HasSuffix(s.sent[n-1], " 604") {
			t.Errorf("600 changes in a minute: NOTIFY was sent %q", s.sent)
		}
		s.sent = nil

		stop()
		serveChange(t, m)
		<-time.After(time.Hour)
		s.expect(t, "after the end")
	})
}

func TestAChangeDuringANotifyIsNotifiedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestPlugin(demo...)
		s := &secondaries{m: m, since: time.Now(), takes: time.Minute}
		ctx, stop := context.WithCancel(t.Context())
		m.notifySecondaries(ctx, s)
		<-time.After(10 * time.Second)
		serveChange(t, m)
		<-time.After(time.Hour + time.Second/2)
		s.expect(t, "a change while NOTIFY is sent", testZone+" 1m10s 1", testZone+" 5s 0")
		serveChange(t, m)
		<-time.After(10 * time.Second)
		stop()
		serveChange(t, m)
		<-time.After(time.Hour)
		s.expect(t, "the end while NOTIFY is sent", testZone+" 500ms 2")
	})
}

func TestFailuresToNotifyAreLoggedOnceAMinute(t *testing.T) {
	var output bytes.Buffer
	before := golog.Writer()
	golog.SetOutput(&output)
	t.Cleanup(func() { golog.SetOutput(before) })
	synctest.Test(t, func(t *testing.T) {
		m := newTestPlugin(demo...)
		s := &secondaries{m: m, since: time.Now(), err: errors.Join(errors.New("192.0.2.2 refused"),
			errors.New("192.0.2.3 refused"))}
		m.notifySecondaries(t.Context(), s)
		for range 30 { // five minutes
			<-time.After(10 * time.Second)
			serveChange(t, m)
		}
		synctest.Wait()
	})
	text := output.String()
	if n := strings.Count(text, "192.0.2.2 refused; 192.0.2.3 refused"); n < 5 || n > 6 || strings.Count(text, "\n") != n {
		t.Errorf("thirty failures in five minutes are logged as\n%s", text)
	}
}

func TestNothingRunsWithoutTheTransferPlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if anything still waits at its end
		newTestPlugin(demo...).notifySecondaries(context.Background(), nil)
	})
}

// listenForNotify starts a secondary, and returns its address and the zones of the NOTIFY messages that it gets.
func listenForNotify(t *testing.T) (address string, zones <-chan string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 100)
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		if r.Opcode == dns.OpcodeNotify && r.Question[0].Qtype == dns.TypeSOA {
			got <- r.Question[0].Name
		}
		if err := w.WriteMsg(new(dns.Msg).SetReply(r)); err != nil {
			t.Error(err)
		}
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.ActivateAndServe() // it ends when the connection is closed
	}()
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return conn.LocalAddr().String(), got
}

func TestASecondaryIsNotifiedByTheTransferPlugin(t *testing.T) {
	before := notifyCadence
	notifyCadence = cadence{time.Millisecond, time.Millisecond, time.Millisecond}
	t.Cleanup(func() { notifyCadence = before })
	secondary, zones := listenForNotify(t)
	api := newAPIServer(t, "10.42.0.1")
	s := newReloads(t, api, func(s *reloads) string {
		return s.with("noendpoints") + "transfer clusterset.local {\n to " + secondary + "\n }"
	})
	for _, ip := range []string{"10.42.0.1", "10.42.0.2"} {
		api.set(ip)
		select {
		case zone := <-zones:
			if got, _ := s.ask(); zone != testZone || got != ip {
				t.Errorf("NOTIFY is for the zone %s, while the answer is %s, want %s", zone, got, ip)
			}
		case <-time.After(patience):
			t.Fatal("there is no NOTIFY")
		}
	}
}
