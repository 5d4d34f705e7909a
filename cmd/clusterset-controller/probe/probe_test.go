// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// serve has a server answer at a port of 127.0.0.1 over TCP and UDP.
func serve(t *testing.T, identity string) (port uint16) {
	t.Helper()
	var config net.ListenConfig
	streams, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	packets, err := config.ListenPacket(t.Context(), "udp", streams.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- serveStreams(streams, identity) }()
	go func() { ended <- servePackets(packets, identity) }()
	t.Cleanup(func() {
		if err := errors.Join(streams.Close(), packets.Close()); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		}
	})
	return netip.MustParseAddrPort(streams.Addr().String()).Port()
}

// TestExchanges has real sockets of all kinds of payload.
func TestExchanges(t *testing.T) {
	c := client{port: serve(t, "west/probe-0"), resolver: net.DefaultResolver}
	reply := c.do(t.Context(), Request{Targets: []Target{
		{Host: "127.0.0.1", Network: TCP, Count: 2},
		{Host: "127.0.0.1", Network: TCP, Count: 1, Large: true},
		{Host: "127.0.0.1", Network: UDP, Count: 16},
		{Host: "127.0.0.1", Network: UDP, Count: 1, Large: true},
	}})
	for i, want := range []struct{ count, bytes int }{{2, minSize}, {1, largeStream}, {16, minSize}, {1, maxSize}} {
		result := reply.Results[i]
		if len(result.Exchanges) != want.count || !slices.Equal(result.Addresses, []string{"127.0.0.1"}) {
			t.Errorf("target %d: got %+v", i, result)
		}
		for _, got := range result.Exchanges {
			if got != (Exchange{
				Address: "127.0.0.1", Bytes: want.bytes, By: "west/probe-0", From: "127.0.0.1", To: "127.0.0.1",
			}) {
				t.Errorf("target %d: got %+v", i, got)
			}
		}
	}
}

// TestFailures tells errors apart.
func TestFailures(t *testing.T) {
	var config net.ListenConfig
	silent, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	foreign := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(foreign.Close)
	packets, err := config.ListenPacket(t.Context(), "udp", silent.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = packets.Close() })
	free, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, network, address string
		want                   Failure
	}{
		{"a silent server over TCP", TCP, silent.Addr().String(), Timeout},
		{"a silent server over UDP", UDP, silent.Addr().String(), Timeout},
		{"no server over TCP", TCP, free.Addr().String(), Refused},
		{"no server over UDP", UDP, free.Addr().String(), Refused},
		{"a server of HTTP", TCP, foreign.Listener.Addr().String(), Foreign},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			at := netip.MustParseAddrPort(test.address)
			got := client{port: at.Port()}.exchange(t.Context(), Target{Network: test.network}, "127.0.0.1")
			if got.Failure != test.want || got.Error == "" || got.By != "" {
				t.Errorf("got %+v", got)
			}
		})
	}
	for err, want := range map[error]Failure{
		&net.DNSError{IsNotFound: true}: NotFound, &net.DNSError{IsTimeout: true}: Timeout,
		&net.DNSError{}: Other, context.DeadlineExceeded: Timeout, io.EOF: Foreign,
	} {
		if got := failureOf(err); got != want {
			t.Errorf("%v: got %s, want %s", err, got, want)
		}
	}
}

// TestNamesAreResolved also tries each address of a name.
func TestNamesAreResolved(t *testing.T) {
	c := client{port: serve(t, "x"), resolver: net.DefaultResolver}
	reply := c.do(t.Context(), Request{Targets: []Target{
		{Host: "localhost", Network: TCP, Count: 1}, {Host: "name.invalid", Network: TCP, Count: 1},
	}})
	if known := reply.Results[0]; !slices.Contains(known.Addresses, "127.0.0.1") ||
		len(known.Exchanges) != len(known.Addresses) {
		t.Errorf("got %+v", known)
	}
	if unknown := reply.Results[1]; unknown.Failure == "" || unknown.Error == "" || len(unknown.Exchanges) > 0 {
		t.Errorf("got %+v", unknown)
	}
}

// TestControl takes requests over HTTP, and refuses those beyond its limits.
func TestControl(t *testing.T) {
	c := client{port: serve(t, "x"), resolver: net.DefaultResolver}
	target := func(change func(*Target)) Target {
		made := Target{Host: "127.0.0.1", Network: TCP, Count: 1}
		change(&made)
		return made
	}
	encode := func(targets ...Target) string {
		text, err := json.Marshal(Request{Targets: targets})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for body, want := range map[string]string{
		encode(target(func(*Target) {})):        "",
		"":                                      "EOF",
		"{":                                     "unexpected EOF",
		`{"command":"rm"}`:                      "unknown field",
		encode(make([]Target, MaxTargets+1)...): "at most 128",
		encode(target(func(t *Target) { t.Count = 0 })):      "use 1 to 16",
		encode(target(func(t *Target) { t.Count = 17 })):     "use 1 to 16",
		encode(target(func(t *Target) { t.Network = "ip" })): "use tcp or udp",
		encode(target(func(t *Target) { t.Host = "a b" })):   "no IP address and no name",
		encode(target(func(t *Target) { t.Host = "a:80" })):  "no IP address and no name",
		`{"targets":"` + strings.Repeat("x", maxBody) + `"}`: "too large",
	} {
		response := httptest.NewRecorder()
		c.handle(response, httptest.NewRequest(http.MethodPost, ControlPath, strings.NewReader(body)))
		if want != "" {
			if response.Code != http.StatusBadRequest || !strings.Contains(response.Body.String(), want) {
				t.Errorf("%.80s: got %d %s", body, response.Code, response.Body.String())
			}
			continue
		}
		var reply Reply
		if err := json.Unmarshal(response.Body.Bytes(), &reply); err != nil || reply.Nameservers == nil ||
			len(reply.Results) != 1 || reply.Results[0].Exchanges[0].By != "x" {
			t.Errorf("got %s: %v", response.Body.String(), err)
		}
	}
}

// TestRepliesAreNoRequests: two servers never keep each other busy, and answer
// with no more than they were sent.
func TestRepliesAreNoRequests(t *testing.T) {
	request := newRequest(minSize, nonce())
	reply := bytes.Clone(request)
	answer(reply, strings.Repeat("i", maxText+1), strings.Repeat("c", maxText+1))
	if _, err := requestSize(reply); err == nil || len(reply) != len(request) {
		t.Errorf("a reply of %d bytes is a request: %v", len(reply), err)
	}
	if identity, from, err := readReply(request, reply); err != nil || len(identity) != maxText || len(from) != maxText {
		t.Errorf("got %q, %q, %v", identity, from, err)
	}
	for _, at := range []int{0, len(asks), len(asks) + nonceSize, headSize, minSize - 1} {
		changed := bytes.Clone(reply)
		changed[at] ^= 0xff
		if _, _, err := readReply(request, changed); err == nil {
			t.Errorf("a reply whose byte %d is another is taken", at)
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(newRequest(minSize, [nonceSize]byte{}))
	f.Fuzz(func(t *testing.T, text []byte) {
		if size, err := requestSize(text); err == nil {
			if size < minSize || size > maxSize {
				t.Errorf("a request of %d bytes", size)
			}
			if size == len(text) {
				request := bytes.Clone(text)
				answer(text, "identity", "client")
				if identity, from, err := readReply(request, text); err != nil || identity != "identity" || from != "client" {
					t.Errorf("got %q, %q, %v", identity, from, err)
				}
			}
		}
		if len(text) >= minSize { // shorter ones are never asked for
			_, _, _ = readReply(newRequest(len(text), nonce()), text)
			forged := bytes.Clone(text)
			copy(forged, answers)
			request := newRequest(len(text), nonce())
			copy(forged[len(asks):], request[len(asks):headSize])
			_, _, _ = readReply(request, forged)
		}
	})
}

func FuzzRequests(f *testing.F) {
	f.Add(`{"targets":[{"host":"127.0.0.1","network":"tcp","count":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if asked, err := readRequest(strings.NewReader(text)); err == nil && asked.Validate() != nil {
			t.Errorf("%q is taken", text)
		}
	})
}
