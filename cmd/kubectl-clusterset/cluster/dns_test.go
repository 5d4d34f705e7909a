// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestWhatIsLostIsAskedAgain: a server answers no question but those after the first few, as if a network lost them.
func TestWhatIsLostIsAskedAgain(t *testing.T) {
	for lost, timeout := range map[int]time.Duration{0: time.Minute, 1: time.Second, tries: 100 * time.Millisecond} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			t.Parallel()
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
			t.Cleanup(func() { _, _ = socket.Close(), <-ended })
			client := &DNSServer{networks: []string{"udp"}, address: socket.LocalAddr().String(), timeout: timeout}
			answer, err := client.Ask(t.Context(), "web.demo.svc.clusterset.local", "A")
			var late net.Error
			if answered := err == nil && answer.Text() == "10.0.0.1"; answered != (lost < tries) ||
				err != nil && (!errors.As(err, &late) || !late.Timeout()) {
				t.Errorf("got %+v, %v", answer, err)
			}
			for range min(lost+1, tries) {
				select {
				case <-asked:
				case <-time.After(time.Minute):
					t.Fatalf("it was not asked %d times", min(lost+1, tries))
				}
			}
		})
	}
}
