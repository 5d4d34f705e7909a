// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
)

// FuzzServeDNS sends arbitrary messages to the plugin. Each reply can be packed, fits the client and echoes the question.
func FuzzServeDNS(f *testing.F) {
	for i, tc := range cases {
		r := new(dns.Msg).SetQuestion(tc.Qname, tc.Qtype)
		if i%2 == 0 {
			r.SetEdns0(uint16(512+i), i%4 == 0)
		}
		packed, err := r.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed, i%3 == 0)
	}
	m := newTestPlugin(append(demo, service{"many", recordtest.SQL, recordtest.Many(150, false)})...)
	m.Next = test.NextHandler(dns.RcodeRefused, nil)
	f.Fuzz(func(t *testing.T, packed []byte, overTCP bool) {
		r := new(dns.Msg)
		if r.Unpack(packed) != nil || len(r.Question) == 0 {
			return // the server answers such messages itself
		}
		w := &test.ResponseWriter{TCP: overTCP}
		state := request.Request{Req: r.Copy(), W: w}
		recorder := dnstest.NewRecorder(w)
		rcode, err := m.ServeDNS(t.Context(), recorder, r)
		must(t, err)
		if recorder.Msg == nil {
			if rcode != dns.RcodeRefused {
				t.Fatalf("nothing is written, and %s returned", dns.RcodeToString[rcode])
			}
			return
		}
		reply := recorder.Msg
		if reply.Rcode != rcode || !reply.Response || !reply.Authoritative || reply.Id != r.Id ||
			reply.Question[0] != r.Question[0] {
			t.Fatalf("the reply to %v is %v", r, reply)
		}
		if (len(reply.Answer) == 0) != (len(reply.Ns) == 1) && !reply.Truncated {
			t.Fatalf("%d answers and %d authorities", len(reply.Answer), len(reply.Ns))
		}
		sections := len(reply.Answer) + len(reply.Extra)
		must(t, request.NewScrubWriter(state.Req, w).WriteMsg(reply))
		if _, err := reply.Pack(); err != nil {
			t.Fatal(err)
		}
		opt := 0
		if reply.IsEdns0() != nil {
			opt = 1
		}
		if len(reply.Answer)+len(reply.Extra)-opt < sections {
			t.Fatalf("the server cut the reply to %v", r.Question[0])
		}
	})
}
