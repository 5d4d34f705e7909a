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

// secondaries is a fake of the transfer plugin that records each NOTIFY.
type secondaries struct {
	plugin.Handler
	m     *Multicluster
	since time.Time

	mu    sync.Mutex
	takes time.Duration // the time that a NOTIFY takes
	err   error
	sent  []string
}

// Notify records the zone, the time since the last reset, and by how much the serial has grown.
func (s *secondaries) Notify(zone string) error {
	s.mu.Lock()
	s.sent = append(s.sent, fmt.Sprintf("%s %v %d", zone, time.Since(s.since), s.m.active().state().Serial-testTime))
	takes, err := s.takes, s.err
	s.mu.Unlock()
	<-time.After(takes)
	return err
}

// expect compares the recorded NOTIFYs with want, which each zone must have got, and resets them.
func (s *secondaries) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	var all []string
	for _, zone := range s.m.config.Zones {
		for _, each := range want {
			all = append(all, zone+" "+each)
		}
	}
	sent := s.reset(0, nil)
	slices.Sort(all)
	if slices.Sort(sent); !slices.Equal(sent, all) {
		t.Errorf("%s: NOTIFY was sent %q, want %q", what, sent, all)
	}
}

// reset returns and clears the recorded NOTIFYs. Each later NOTIFY takes this time and returns this error.
func (s *secondaries) reset(takes time.Duration, err error) (sent []string) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	sent, s.sent, s.since, s.takes, s.err = s.sent, nil, time.Now(), takes, err
	return sent
}

// serveChange changes an answer, which increments the serial.
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

// TestSecondariesAreNotifiedOfEveryChangeWithinLimits: failures are logged at most once a minute.
func TestSecondariesAreNotifiedOfEveryChangeWithinLimits(t *testing.T) {
	var logged bytes.Buffer
	before := golog.Writer()
	golog.SetOutput(&logged)
	t.Cleanup(func() { golog.SetOutput(before) })
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left at the end
		m := newReversePlugin(demo...)
		m.notifySecondaries(context.Background(), nil) // without the transfer plugin
		x := m.index.Swap(nil)
		s := &secondaries{m: m, since: time.Now()}
		ctx, stop := context.WithCancel(t.Context())
		m.notifySecondaries(ctx, s)
		<-time.After(time.Hour + time.Second/2) // changes happen between two checks of the serial
		s.expect(t, "before the first sync")
		m.previous.Store(newReversePlugin(demo...))
		<-time.After(time.Hour)
		s.expect(t, "while the plugin before a reload answers", "500ms 0")
		m.previous.Store(nil)
		m.index.Store(x)
		<-time.After(time.Hour)
		s.expect(t, "after the first sync", "500ms 0")

		m.index.Load().Update(testTime+9, nil)
		<-time.After(time.Hour)
		s.expect(t, "at rest")

		serveChange(t, m)
		<-time.After(2 * time.Second)
		serveChange(t, m)
		<-time.After(2 * time.Second)
		serveChange(t, m)
		<-time.After(time.Hour)
		s.expect(t, "after changes in the pause", "500ms 1", "5.5s 3")

		s.reset(0, errors.Join(errors.New("192.0.2.2 refused"), errors.New("192.0.2.3 refused")))
		for range 600 {
			serveChange(t, m)
			<-time.After(time.Second / 4)
		}
		<-time.After(10 * time.Second)
		if sent := s.reset(time.Minute, nil); len(sent) > 3*32 || !strings.HasSuffix(sent[len(sent)-1], " 603") {
			t.Errorf("600 changes in 150 seconds: NOTIFY was sent %q", sent)
		}
		if n := strings.Count(logged.String(), "192.0.2.2 refused; 192.0.2.3 refused"); n != 3*3 || strings.Count(logged.String(), "\n") != n {
			t.Errorf("failures for 150 seconds are logged as\n%s", logged.String())
		}

		serveChange(t, m)
		<-time.After(10 * time.Second)
		serveChange(t, m)
		<-time.After(time.Hour)
		s.expect(t, "a change while NOTIFY is sent", "1m5.5s 605", "500ms 604")
		s.reset(time.Minute, nil)
		serveChange(t, m)
		<-time.After(10 * time.Second)
		stop()
		serveChange(t, m)
		<-time.After(time.Hour)
		s.expect(t, "the end while NOTIFY is sent", "500ms 606")
	})
}

func TestASecondaryIsNotifiedByTheTransferPlugin(t *testing.T) {
	before := notifyPause
	notifyPause = 5 * time.Millisecond
	t.Cleanup(func() { notifyPause = before })
	secondary, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	defer secondary.Close()
	api := newAPIServer(t, "10.42.0.1")
	s := newReloads(t, api, func(s *reloads) string {
		return s.with("noendpoints") + "transfer clusterset.local {\n to " + secondary.LocalAddr().String() + "\n }"
	})
	for _, ip := range []string{"10.42.0.1", "10.42.0.2"} {
		api.set(ip)
		message, r := make([]byte, dns.MinMsgSize), new(dns.Msg)
		_ = secondary.SetDeadline(time.Now().Add(patience))
		n, from, err := secondary.ReadFrom(message)
		if err != nil || r.Unpack(message[:n]) != nil || r.Opcode != dns.OpcodeNotify || r.Question[0].Name != testZone {
			t.Fatalf("there is no NOTIFY, but %v, %v", r, err)
		}
		if got := s.ask(); got != ip+" 5" {
			t.Errorf("at the NOTIFY the answer is %s, want %s", got, ip)
		}
		if message, err = new(dns.Msg).SetReply(r).Pack(); err == nil {
			_, err = secondary.WriteTo(message, from)
		}
		if err != nil {
			t.Error(err)
		}
	}
}
