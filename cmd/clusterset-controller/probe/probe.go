// SPDX-License-Identifier: Apache-2.0

// Package probe measures which pods reach which: a server that echoes over TCP
// and UDP, and a client that asks such servers, and servers of DNS. `kubectl
// clusterset test connectivity` runs both in each cluster, `kubectl clusterset
// check --node-local` the latter.
//
// The server answers requests of its own format only, with a reply of the same
// size that no server takes for a request: it neither amplifies traffic nor
// keeps two servers busy with each other.
package probe

import (
	"errors"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// Port is where the server echoes, over TCP and UDP, on all addresses.
	Port = 8007
	// ControlPort is where the client takes its requests, on 127.0.0.1 only: it
	// is reached through a port-forward, and by no other pod.
	ControlPort = 8008
	// ControlPath is where a Request is posted, and answered with a Reply.
	ControlPath = "/probe"
)

// Limits of a Request.
const (
	MaxTargets = 128
	MaxCount   = 16
	MaxQueries = 16
	// MaxMessage is the size of a DNS message in both directions, which no network
	// fragments.
	MaxMessage = 1232
)

// Networks of a Target.
const (
	TCP = "tcp"
	UDP = "udp"
)

// A Request is what a pod is to try.
type Request struct {
	Targets []Target `json:"targets"`
	Queries []Query  `json:"queries,omitempty"`
}

// A Query is a DNS message for one server, whatever /etc/resolv.conf says.
type Query struct {
	// Server is the IP address of the server. It is asked at port 53 over UDP.
	Server string `json:"server"`
	// Message is sent as it is.
	Message []byte `json:"message"`
}

// A Target is a server, or those behind a name.
type Target struct {
	// Host is an IP address, or a name that the pod resolves as its
	// /etc/resolv.conf says. Each address of a name is tried.
	Host string `json:"host"`
	// Network is TCP or UDP.
	Network string `json:"network"`
	// Large exchanges as many bytes as a packet of the pod's interface holds, and
	// over TCP several packets.
	Large bool `json:"large,omitempty"`
	// Count is how often each address is tried.
	Count int `json:"count"`
}

// Validate returns what is wrong with a request.
func (r Request) Validate() error {
	if len(r.Targets) > MaxTargets {
		return fmt.Errorf("%d targets: at most %d", len(r.Targets), MaxTargets)
	}
	if len(r.Queries) > MaxQueries {
		return fmt.Errorf("%d queries: at most %d", len(r.Queries), MaxQueries)
	}
	var wrong []error
	for i, target := range r.Targets {
		if _, err := netip.ParseAddr(target.Host); err != nil &&
			len(validation.IsDNS1123Subdomain(target.Host)) > 0 {
			wrong = append(wrong, fmt.Errorf("target %d: host %q: no IP address and no name", i, target.Host))
		}
		if target.Network != TCP && target.Network != UDP {
			wrong = append(wrong, fmt.Errorf("target %d: network %q: use tcp or udp", i, target.Network))
		}
		if target.Count < 1 || target.Count > MaxCount {
			wrong = append(wrong, fmt.Errorf("target %d: count %d: use 1 to %d", i, target.Count, MaxCount))
		}
	}
	for i, query := range r.Queries {
		if _, err := netip.ParseAddr(query.Server); err != nil {
			wrong = append(wrong, fmt.Errorf("query %d: server %q: no IP address", i, query.Server))
		}
		if size := len(query.Message); size < dnsHeader || size > MaxMessage {
			wrong = append(wrong, fmt.Errorf("query %d: a message of %d bytes: use %d to %d", i, size, dnsHeader, MaxMessage))
		}
	}
	return errors.Join(wrong...)
}

// A Reply is what became of a Request.
type Reply struct {
	// Nameservers are those of the pod's /etc/resolv.conf.
	Nameservers []string `json:"nameservers"`
	// Results correspond to the targets.
	Results []Result `json:"results"`
	// Answers correspond to the queries.
	Answers []Answer `json:"answers,omitempty"`
}

// An Answer is what became of a Query.
type Answer struct {
	// Message is the reply of the server.
	Message []byte `json:"message,omitempty"`
	// Failure and Error say why there is none.
	Failure Failure `json:"failure,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// A Result is what became of a Target.
type Result struct {
	// Addresses are the host, or those that it resolved to, sorted.
	Addresses []string `json:"addresses"`
	// Failure and Error say why a name did not resolve.
	Failure Failure `json:"failure,omitempty"`
	Error   string  `json:"error,omitempty"`
	// Exchanges are the tries.
	Exchanges []Exchange `json:"exchanges"`
}

// An Exchange is one try to send bytes to an address and get them back.
type Exchange struct {
	Address string `json:"address"`
	// Bytes are those of the payload, the same in both directions.
	Bytes int `json:"bytes"`
	// By is the identity of the server that answered.
	By string `json:"by,omitempty"`
	// From and To are the addresses of the client as it and as the server sees it.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Failure and Error say why it failed, and are empty if it did not.
	Failure Failure `json:"failure,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// A Failure is a kind of error.
type Failure string

// Kinds of errors.
const (
	// Timeout is of a packet, or a DNS query, without an answer.
	Timeout Failure = "timeout"
	// Refused is of a host without a server at the port.
	Refused Failure = "refused"
	// Unreachable is of an address without a route.
	Unreachable Failure = "unreachable"
	// Reset is of a connection that was ended from outside.
	Reset Failure = "reset"
	// Foreign is of an answer that no probe gives.
	Foreign Failure = "foreign"
	// NotFound is of a name that does not exist, or has no address.
	NotFound Failure = "not-found"
	// Other is everything else.
	Other Failure = "other"
)
