// SPDX-License-Identifier: Apache-2.0

// Package dns queries the DNS of a cluster.
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

// defaultTimeout bounds one exchange; tries is how often a query is sent without an answer.
const (
	defaultTimeout = 3 * time.Second
	tries          = 3
)

// A Server is a DNS server.
type Server struct {
	// Name identifies it in output.
	Name string

	network, address string
	// timeout bounds one exchange.
	timeout time.Duration
	close   func()
}

// At is the server at an address, whose default port is 53. Queries use UDP, and
// TCP if the answer is truncated.
func At(address string) *Server {
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(strings.Trim(address, "[]"), "53")
	}
	return &Server{Name: address, network: "udp", address: address, timeout: defaultTimeout, close: func() {}}
}

// Close releases the connection to the server.
func (s *Server) Close() { s.close() }

// An Answer is that of a server to one query.
type Answer struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Rcode string `json:"rcode"`
	// Records are the data of the records of that type, sorted.
	Records []string `json:"records"`
}

// Text is the answer as text.
func (a Answer) Text() string {
	switch {
	case a.Rcode != "NOERROR":
		return a.Rcode
	case len(a.Records) == 0:
		return "no records"
	}
	return strings.Join(a.Records, " ")
}

// Ask queries the records of a name and type, such as A. A negative answer is no
// error.
func (s *Server) Ask(ctx context.Context, name, kind string) (Answer, error) {
	question := new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.StringToType[kind])
	question.SetEdns0(1232, false)
	reply, err := s.exchange(ctx, question)
	if err != nil {
		return Answer{}, fmt.Errorf("query %s for %s %s: %w", s.Name, name, kind, err)
	}
	answer := Answer{Name: name, Type: kind, Rcode: dns.RcodeToString[reply.Rcode], Records: []string{}}
	for _, record := range reply.Answer {
		if dns.TypeToString[record.Header().Rrtype] == kind {
			answer.Records = append(answer.Records, Data(record))
		}
	}
	slices.Sort(answer.Records)
	return answer, nil
}

// Data is the data of a record as in Answer.Records.
func Data(record dns.RR) string { return strings.TrimPrefix(record.String(), record.Header().String()) }

func (s *Server) exchange(ctx context.Context, question *dns.Msg) (reply *dns.Msg, err error) {
	client := &dns.Client{Net: s.network, Timeout: s.timeout}
	for range tries {
		reply, _, err = client.ExchangeContext(ctx, question, s.address)
		if err == nil && reply.Truncated && client.Net == "udp" {
			client.Net = "tcp"
			reply, _, err = client.ExchangeContext(ctx, question, s.address)
		}
		// A lost packet is sent again.
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
