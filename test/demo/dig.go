// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// answer is what a DNS server said to one question: the response code and the
// records of the answer section as zone text without TTL, sorted.
type answer struct {
	rcode   string
	records []string
}

// dig asks the server over UDP. An answer that does not come is an error; a negative one is not.
func dig(ctx context.Context, server, name, rrtype string) (answer, []dns.RR, error) {
	question := new(dns.Msg)
	question.SetQuestion(dns.Fqdn(name), dns.StringToType[rrtype])
	question.SetEdns0(1232, false)
	client := &dns.Client{Timeout: time.Second}
	response, _, err := client.ExchangeContext(ctx, question, server)
	if err != nil {
		return answer{}, nil, fmt.Errorf("ask %s for %s %s: %w", server, name, rrtype, err)
	}
	// SRV records begin at another one each time.
	slices.SortFunc(response.Answer, func(a, b dns.RR) int { return strings.Compare(withoutTTL(a), withoutTTL(b)) })
	result := answer{rcode: dns.RcodeToString[response.Rcode]}
	for _, record := range response.Answer {
		result.records = append(result.records, withoutTTL(record))
	}
	return result, response.Answer, nil
}

func withoutTTL(record dns.RR) string {
	header := record.Header()
	return strings.Join([]string{
		header.Name, dns.TypeToString[header.Rrtype],
		strings.TrimPrefix(record.String(), header.String()),
	}, " ")
}

func (a answer) equal(other answer) bool {
	return a.rcode == other.rcode && slices.Equal(a.records, other.records)
}

func (a answer) String() string {
	if len(a.records) == 0 {
		return a.rcode + ", no answer"
	}
	return a.rcode + "\n    " + strings.Join(a.records, "\n    ")
}

// found is the answer NOERROR with these records, given as "name type data".
func found(records ...string) answer {
	slices.Sort(records)
	return answer{rcode: "NOERROR", records: records}
}

// nameError is the answer NXDOMAIN.
func nameError() answer { return answer{rcode: "NXDOMAIN"} }

// addresses are A records of one name.
func addresses(name string, ips ...string) []string {
	records := make([]string, 0, len(ips))
	for _, ip := range ips {
		records = append(records, fmt.Sprintf("%s A %s", name, ip))
	}
	return records
}
