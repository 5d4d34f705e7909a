// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/soak/judge"
	"github.com/clusterset-dns/clusterset-dns/test/soak/outcome"
)

const (
	// queryTimeout is what a resolver waits for an answer.
	queryTimeout = 5 * time.Second
	// lookTimeout is how long the API server may take to tell of an import.
	lookTimeout = 500 * time.Millisecond
	// lookEvery is how often it is asked for the same one, at most.
	lookEvery = 200 * time.Millisecond
	zone      = "." + namespace + ".svc.clusterset.local."
)

// ask asks the cluster's DNS server over UDP, once. The addresses are those of
// the answer or, of an SRV query, those that come with it.
func (c *cluster) ask(ctx context.Context, name string, rrtype uint16) judge.Reply {
	reply := judge.Reply{Reader: c.Name(), Name: name, Sent: time.Now(), Outcome: judge.Silence}
	qname := name + zone
	if rrtype == dns.TypeSRV {
		qname = "_http._tcp." + qname
	}
	question := new(dns.Msg).SetQuestion(qname, rrtype)
	question.SetEdns0(1232, false)
	client := dns.Client{Timeout: queryTimeout}
	if server := c.dns.running(); server != nil {
		if answer, _, err := client.ExchangeContext(ctx, question, server.Address); err == nil {
			reply.Outcome, reply.Addresses = read(answer)
		}
	}
	reply.Received = time.Now()
	return reply
}

func read(answer *dns.Msg) (outcome judge.Outcome, addresses []netip.Addr) {
	switch answer.Rcode {
	case dns.RcodeSuccess:
		outcome = judge.Answered
	case dns.RcodeNameError:
		outcome = judge.NoName
	default:
		return judge.Failed, nil
	}
	for _, records := range [][]dns.RR{answer.Answer, answer.Extra} {
		for _, record := range records {
			if a, ok := record.(*dns.A); ok {
				if address, ok := netip.AddrFromSlice(a.A.To4()); ok {
					addresses = append(addresses, address)
				}
			}
		}
	}
	return outcome, addresses
}

// query asks for random names until the context ends. Half of the queries ask for what was changed last.
func (c *cluster) query(ctx context.Context, every time.Duration, random *rand.Rand) {
	all := append(serviceNames(), "never-exported")
	looked := map[string]time.Time{}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		rrtype := dns.TypeA
		if random.IntN(5) == 0 {
			rrtype = dns.TypeSRV
		}
		name := all[random.IntN(len(all))]
		if changed := c.journal.changed.Load(); changed != nil && random.IntN(2) == 0 {
			name = *changed
		}
		reply := c.ask(context.WithoutCancel(ctx), name, rrtype)
		c.journal.count("query: " + dns.TypeToString[rrtype])
		if rrtype == dns.TypeSRV && len(reply.Addresses) == 0 {
			continue // it may have no port of that name
		}
		for _, wrong := range c.judge.Reply(reply) {
			c.journal.wrong("%s", wrong)
		}
		if time.Since(looked[name]) > lookEvery && c.judge.Doubts(c.Name(), name) {
			c.lookAtImport(ctx, name)
			looked[name] = time.Now()
		}
	}
}

// lookAtImport tells the judge which IPs an import has now, if the API server says so.
func (c *cluster) lookAtImport(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	seen, err := c.mcs.MulticlusterV1beta1().ServiceImports(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return // the doubt stays
	}
	c.journal.count("look at an import because of an answer")
	c.judge.HadIPs(c.Name(), name, outcome.Addresses(seen.Spec.IPs), time.Now())
}
