// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxBody bounds the JSON of a Request.
	maxBody = 64 << 10
	// parallel is how many exchanges a client does at once.
	parallel = 32
	// maxAddresses is how many of a name's addresses are tried.
	maxAddresses = 256
	// streamTimeout has room for two repetitions of a first packet.
	streamTimeout = 4 * time.Second
	// largeStream is more than one packet of any network.
	largeStream = 32 << 10
	// packetTries includes those that teach both sides the MTU of the path.
	packetTries   = 4
	packetTimeout = 700 * time.Millisecond
	// resolveTimeout is that of a resolver with three search domains, two tries
	// each, that answers none.
	resolveTimeout = 10 * time.Second
)

// A client asks servers at a port.
type client struct {
	port     uint16
	resolver *net.Resolver
	// dnsPort is the port of servers of queries.
	dnsPort uint16
}

func (c client) handle(response http.ResponseWriter, request *http.Request) {
	asked, err := readRequest(http.MaxBytesReader(response, request.Body, maxBody))
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	response.Header().Set("Content-Type", "application/json")
	// Who does not read on has gone.
	_ = json.NewEncoder(response).Encode(c.do(request.Context(), asked))
}

func readRequest(body io.Reader) (Request, error) {
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	var asked Request
	if err := decoder.Decode(&asked); err != nil {
		return Request{}, err
	}
	return asked, asked.Validate()
}

// do tries all targets.
func (c client) do(ctx context.Context, asked Request) Reply {
	reply := Reply{
		Nameservers: nameservers(), Results: make([]Result, len(asked.Targets)), Answers: make([]Answer, len(asked.Queries)),
	}
	room := make(chan struct{}, parallel)
	var group sync.WaitGroup
	for i, target := range asked.Targets {
		group.Go(func() {
			result := &reply.Results[i]
			*result = c.resolve(ctx, target.Host, room)
			addresses := result.Addresses[:min(len(result.Addresses), maxAddresses)]
			result.Exchanges = make([]Exchange, len(addresses)*target.Count)
			for j := range result.Exchanges {
				group.Go(func() {
					room <- struct{}{}
					defer func() { <-room }()
					result.Exchanges[j] = c.exchange(ctx, target, addresses[j/target.Count])
				})
			}
		})
	}
	for i, query := range asked.Queries {
		group.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			reply.Answers[i] = c.query(ctx, query)
		})
	}
	group.Wait()
	return reply
}

// resolve looks up a host that is a name.
func (c client) resolve(ctx context.Context, host string, room chan struct{}) Result {
	if _, err := netip.ParseAddr(host); err == nil {
		return Result{Addresses: []string{host}}
	}
	room <- struct{}{}
	defer func() { <-room }()
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	found, err := c.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return Result{Addresses: []string{}, Failure: failureOf(err), Error: err.Error()}
	}
	var addresses []string
	for _, address := range found {
		addresses = append(addresses, address.Unmap().String())
	}
	slices.Sort(addresses)
	return Result{Addresses: slices.Compact(addresses)}
}

func (c client) exchange(ctx context.Context, target Target, address string) Exchange {
	result := Exchange{Address: address}
	var err error
	if target.Network == UDP {
		err = c.packets(ctx, target.Large, &result)
	} else {
		err = c.stream(ctx, target.Large, &result)
	}
	if err != nil {
		result.Failure, result.Error = failureOf(err), err.Error()
	}
	return result
}

// connect has a connection that ends with the deadline.
func (c client) connect(ctx context.Context, network string, timeout time.Duration, result *Exchange) (net.Conn,
	error,
) {
	dialer := net.Dialer{Timeout: timeout}
	connection, err := dialer.DialContext(ctx, network, net.JoinHostPort(result.Address, strconv.Itoa(int(c.port))))
	if err != nil {
		return nil, err
	}
	result.From = hostOf(connection.LocalAddr())
	return connection, nil
}

func (c client) stream(ctx context.Context, large bool, result *Exchange) error {
	deadline := time.Now().Add(streamTimeout)
	if result.Bytes = minSize; large {
		result.Bytes = largeStream
	}
	connection, err := c.connect(ctx, TCP, streamTimeout, result)
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(deadline); err != nil {
		return err
	}
	request := newRequest(result.Bytes, nonce())
	if _, err := connection.Write(request); err != nil {
		return err
	}
	reply := make([]byte, len(request))
	if n, err := io.ReadFull(connection, reply); err != nil {
		if n > 0 && errors.Is(err, io.ErrUnexpectedEOF) {
			err = errForeign
		}
		return err
	}
	result.By, result.To, err = readReply(request, reply)
	return err
}

func (c client) packets(ctx context.Context, large bool, result *Exchange) error {
	connection, err := c.connect(ctx, UDP, packetTimeout, result)
	if err != nil {
		return err
	}
	defer connection.Close()
	if result.Bytes = minSize; large {
		result.Bytes = largest(result.From)
	}
	request := newRequest(result.Bytes, nonce())
	reply := make([]byte, maxSize+1)
	for range packetTries {
		if err = ctx.Err(); err != nil {
			return err
		}
		if err := connection.SetDeadline(time.Now().Add(packetTimeout)); err != nil {
			return err
		}
		// An error may be of the try before: a packet that was too large, or that
		// nobody took.
		n := 0
		if _, err = connection.Write(request); err == nil {
			n, err = connection.Read(reply)
		}
		if err == nil {
			result.By, result.To, err = readReply(request, reply[:n])
		}
		if err == nil {
			return nil
		}
	}
	return err
}

// largest is the payload of a UDP packet that fills the interface with an
// address.
func largest(local string) int {
	address, err := netip.ParseAddr(local)
	if err != nil {
		return minSize
	}
	head := 20 + 8 // of IPv4 and UDP
	if address.Is6() {
		head = 40 + 8
	}
	return min(max(mtuOf(address)-head, minSize), maxSize)
}

// defaultMTU is that of an interface that is not found.
const defaultMTU = 1500

func mtuOf(local netip.Addr) int {
	interfaces, err := net.Interfaces()
	if err != nil {
		return defaultMTU
	}
	for _, each := range interfaces {
		addresses, err := each.Addrs()
		if err != nil {
			continue
		}
		for _, address := range addresses {
			prefix, err := netip.ParsePrefix(address.String())
			if err == nil && prefix.Addr().Unmap() == local {
				return each.MTU
			}
		}
	}
	return defaultMTU
}

func nonce() (made [nonceSize]byte) {
	_, _ = rand.Read(made[:]) // never fails
	return made
}

// failureOf is the kind of an error.
func failureOf(err error) Failure {
	var timeout net.Error
	var lookup *net.DNSError
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return NotFound
	case errors.Is(err, errForeign), errors.Is(err, io.EOF):
		return Foreign
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Unreachable
	case errors.Is(err, syscall.ECONNRESET):
		return Reset
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Other
}

// nameservers are those of the pod's /etc/resolv.conf.
func nameservers() []string {
	found := []string{}
	text, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return found
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "nameserver" {
			found = append(found, fields[1])
		}
	}
	return found
}
