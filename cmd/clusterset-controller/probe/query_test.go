// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"encoding/json"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// nameserver answers each packet with those that answer returns.
func nameserver(t *testing.T, answer func(query []byte) [][]byte) (port uint16) {
	t.Helper()
	var config net.ListenConfig
	socket, err := config.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, MaxMessage)
		for {
			n, client, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			for _, reply := range answer(bytes.Clone(buffer[:n])) {
				if _, err := socket.WriteTo(reply, client); err != nil {
					return
				}
			}
		}
	}()
	t.Cleanup(func() { _ = socket.Close(); <-done })
	return netip.MustParseAddrPort(socket.LocalAddr().String()).Port()
}

// TestQueries: a query gets the reply with its id, and nothing else that arrives.
func TestQueries(t *testing.T) {
	port := nameserver(t, func(query []byte) [][]byte {
		other, reply := bytes.Clone(query), append(bytes.Clone(query), "answer"...)
		other[0]++
		return [][]byte{other, query[:3], reply}
	})
	message := []byte("\x01\x02 and a header")
	answers := client{dnsPort: port}.do(t.Context(), Request{Queries: []Query{{"127.0.0.1", message}}}).Answers
	if len(answers) != 1 || string(answers[0].Message) != string(message)+"answer" || answers[0].Failure != "" {
		t.Errorf("got %+v", answers)
	}
}

// TestQueryWithoutAServer: the kind of failure is known.
func TestQueryWithoutAServer(t *testing.T) {
	socket, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := netip.MustParseAddrPort(socket.LocalAddr().String()).Port()
	if err := socket.Close(); err != nil {
		t.Fatal(err)
	}
	got := client{dnsPort: port}.query(t.Context(), Query{"127.0.0.1", make([]byte, dnsHeader)})
	if got.Failure != Refused || got.Error == "" || got.Message != nil {
		t.Errorf("got %+v", got)
	}
}

func TestQueriesAreValidated(t *testing.T) {
	message := make([]byte, dnsHeader)
	for want, query := range map[string]Query{
		"":                         {"169.254.20.10", message},
		"no IP address":            {"example.org", message},
		"a message of 11 bytes":    {"::1", message[1:]},
		"a message of 1233 bytes:": {"::1", make([]byte, MaxMessage+1)},
	} {
		err := Request{Queries: []Query{query}}.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", query, err, want)
		}
	}
	if err := (Request{Queries: make([]Query, MaxQueries+1)}).Validate(); err == nil {
		t.Error("too many queries are accepted")
	}
	// Programs that know no queries refuse a field that they do not know.
	if text, err := json.Marshal(Request{}); err != nil || strings.Contains(string(text), "queries") {
		t.Errorf("got %s, %v", text, err)
	}
}
