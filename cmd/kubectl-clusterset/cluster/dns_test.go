// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// A lossy server answers no question but those after the first few.
type lossy struct {
	lost  int
	asked chan struct{} // has room for all questions that may come
}

func (l *lossy) ServeDNS(w dns.ResponseWriter, question *dns.Msg) {
	l.asked <- struct{}{}
	if len(l.asked) <= l.lost {
		return
	}
	record, err := dns.NewRR(question.Question[0].Name + " 5 IN A 10.0.0.1")
	if err != nil {
		panic(err)
	}
	reply := new(dns.Msg).SetReply(question)
	reply.Answer = []dns.RR{record}
	_ = w.WriteMsg(reply)
}

// serve has a handler answer at a port of its own until the test ends.
func serve(t *testing.T, network string, handler dns.Handler) string {
	t.Helper()
	server := &dns.Server{Handler: handler}
	var address string
	if network == "tcp" {
		listener, err := new(net.ListenConfig).Listen(t.Context(), network, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server.Listener, address = listener, listener.Addr().String()
	} else {
		socket, err := new(net.ListenConfig).ListenPacket(t.Context(), network, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server.PacketConn, address = socket, socket.LocalAddr().String()
	}
	started, ended := make(chan struct{}), make(chan error, 1)
	server.NotifyStartedFunc = func() { close(started) }
	go func() { ended <- server.ActivateAndServe() }()
	<-started
	t.Cleanup(func() {
		if err := server.Shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return address
}

// What a port-forward, or a network, loses is asked for again.
func TestWhatIsLostIsAskedAgain(t *testing.T) {
	tests := []struct {
		name, network string
		lost          int
		timeout       time.Duration
		asked         int
		answered      bool
	}{
		{"nothing over UDP", "udp", 0, time.Minute, 1, true},
		{"nothing over TCP", "tcp", 0, time.Minute, 1, true},
		{"the first over UDP", "udp", 1, time.Second, 2, true},
		{"the first over TCP", "tcp", 1, time.Second, 2, true},
		{"all over UDP", "udp", tries, 100 * time.Millisecond, tries, false},
		{"all over TCP", "tcp", tries, 100 * time.Millisecond, tries, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			handler := &lossy{lost: test.lost, asked: make(chan struct{}, tries)}
			server := &DNSServer{networks: []string{test.network}, address: serve(t, test.network, handler), timeout: test.timeout}
			answer, err := server.Ask(t.Context(), "web.demo.svc.clusterset.local", "A")
			var timeout net.Error
			if got := err == nil && slices.Equal(answer.Records, []string{"10.0.0.1"}); got != test.answered ||
				err != nil && (!errors.As(err, &timeout) || !timeout.Timeout()) {
				t.Errorf("got %+v, %v; want it answered: %t", answer, err, test.answered)
			}
			for range test.asked {
				select {
				case <-handler.asked:
				case <-time.After(time.Minute):
					t.Fatalf("it was not asked %d times", test.asked)
				}
			}
		})
	}
}
