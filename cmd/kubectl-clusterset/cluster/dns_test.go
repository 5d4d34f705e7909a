// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestWhatIsLostIsAskedAgain: a server ignores the first few queries, as if a network lost them.
func TestWhatIsLostIsAskedAgain(t *testing.T) {
	was := exchangeTimeout
	t.Cleanup(func() { exchangeTimeout = was })
	for lost, timeout := range map[int]time.Duration{0: time.Minute, 1: time.Second, tries: 100 * time.Millisecond} {
		exchangeTimeout = timeout
		socket, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		asked := make(chan struct{}, tries)
		server := &dns.Server{PacketConn: socket, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) {
			asked <- struct{}{}
			if len(asked) <= lost {
				return
			}
			reply := new(dns.Msg).SetReply(question)
			reply.Answer = []dns.RR{&dns.A{
				Hdr: dns.RR_Header{Name: question.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(10, 0, 0, 1),
			}}
			_ = w.WriteMsg(reply)
		})}
		ended := make(chan error, 1)
		go func() { ended <- server.ActivateAndServe() }()
		answer, err := DNSAt(socket.LocalAddr().String()).Ask(t.Context(), "web.demo.svc.clusterset.local", "A")
		for range min(lost+1, tries) {
			<-asked
		}
		_, _ = socket.Close(), <-ended
		var late net.Error
		if answered := err == nil && answer.Text() == "10.0.0.1"; answered != (lost < tries) ||
			err != nil && (!errors.As(err, &late) || !late.Timeout()) {
			t.Errorf("%d are lost: got %+v, %v", lost, answer, err)
		}
	}
}
