// SPDX-License-Identifier: Apache-2.0

// Package dns asks a cluster's DNS, as a pod would.
package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// defaultTimeout bounds one exchange; tries are how often one is made to which no answer comes.
const (
	defaultTimeout = 3 * time.Second
	tries          = 3
)

// A Server is one that can be asked.
type Server struct {
	// Name says which one it is, for people.
	Name string

	network, address string
	// timeout bounds one exchange.
	timeout time.Duration
	close   func()
}

// At is the server at an address, with port 53 where it names none. It is asked
// over UDP, and over TCP where the answer does not fit.
func At(address string) *Server {
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(strings.Trim(address, "[]"), "53")
	}
	return &Server{Name: address, network: "udp", address: address, timeout: defaultTimeout, close: func() {}}
}

// Close gives up what it takes to reach the server.
func (s *Server) Close() { s.close() }

// An Answer is what a server said.
type Answer struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Rcode string `json:"rcode"`
	// Records are the data of the records of that type, sorted.
	Records []string `json:"records"`
}

// Text is the answer as people read it.
func (a Answer) Text() string {
	switch {
	case a.Rcode != "NOERROR":
		return a.Rcode
	case len(a.Records) == 0:
		return "no records"
	}
	return strings.Join(a.Records, " ")
}

// Ask asks for the records of a name and type, such as A. An answer that does
// not come is an error; a negative one is not.
func (s *Server) Ask(ctx context.Context, name, kind string) (Answer, error) {
	question := new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.StringToType[kind])
	question.SetEdns0(1232, false)
	reply, err := s.exchange(ctx, question)
	if err != nil {
		return Answer{}, fmt.Errorf("ask %s for %s %s: %w", s.Name, name, kind, err)
	}
	answer := Answer{Name: name, Type: kind, Rcode: dns.RcodeToString[reply.Rcode], Records: []string{}}
	for _, record := range reply.Answer {
		if dns.TypeToString[record.Header().Rrtype] == kind {
			answer.Records = append(answer.Records, strings.TrimPrefix(record.String(), record.Header().String()))
		}
	}
	slices.Sort(answer.Records)
	return answer, nil
}

func (s *Server) exchange(ctx context.Context, question *dns.Msg) (reply *dns.Msg, err error) {
	client := &dns.Client{Net: s.network, Timeout: s.timeout}
	for range tries {
		reply, _, err = client.ExchangeContext(ctx, question, s.address)
		if err == nil && reply.Truncated && client.Net == "udp" {
			client.Net = "tcp"
			reply, _, err = client.ExchangeContext(ctx, question, s.address)
		}
		// What is lost may arrive the next time.
		if err == nil || ctx.Err() != nil || client.Net != "udp" && !isTimeout(err) {
			return reply, err
		}
	}
	return nil, err
}

func isTimeout(err error) bool {
	var failed net.Error
	return errors.As(err, &failed) && failed.Timeout()
}
