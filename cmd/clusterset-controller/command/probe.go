// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

const (
	// identityHeader has the identity of the server that answers.
	identityHeader = "Clusterset-Probe"
	// interval is the pause before a target is tried again.
	interval = time.Second
	// largeSize takes several full packets of any network, smallSize passes every network.
	smallSize, largeSize = 512, 32 << 10
	// exchangeTimeout has room for two retransmissions of a first packet, resolveTimeout for three search domains with two
	// tries each. The server waits for resolveTimeout, too.
	exchangeTimeout, resolveTimeout = 4 * time.Second, 10 * time.Second
)

// probe is the program of the pods that kubectl clusterset test connectivity starts: it echoes over HTTP, on all addresses,
// until ctx ends. It tries each target until a connection succeeds, and writes a state.ProbeLine, which the command line
// reads as the log of the pod, if the result changes. A target is NAME=IDENTITY: the name is resolved as
// /etc/resolv.conf says, the server must have the identity.
func probe(ctx context.Context, out io.Writer, identity string, targets []string) error {
	for i, target := range targets {
		name, of, _ := strings.Cut(target, "=")
		go func() {
			for last := (state.ProbeResult{}); last.Step != state.ProbeOK && ctx.Err() == nil; <-time.After(interval) {
				if result := connect(ctx, net.DefaultResolver.LookupHost, name, of, state.ProbePort); result != last {
					last = result
					// It makes one write. Without a reader of the log, its error does not matter.
					_ = json.NewEncoder(out).Encode(state.ProbeLine{Index: i, ProbeResult: result})
				}
			}
		}()
	}
	server := &http.Server{
		Addr: ":" + strconv.Itoa(state.ProbePort), Handler: echo(identity), ReadTimeout: resolveTimeout, WriteTimeout: resolveTimeout,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// echo returns bodies of up to largeSize bytes as they are, and so does not amplify traffic.
func echo(identity string) http.HandlerFunc {
	return func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, largeSize))
		if err == nil {
			response.Header().Set(identityHeader, identity)
			_, _ = response.Write(body) // fails if the client has gone
		}
	}
}

// connect exchanges payloads with all addresses of a name at a port until one fails.
func connect(ctx context.Context, lookup func(context.Context, string) ([]string, error), name, identity string, port int) state.ProbeResult {
	resolving, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	addresses, err := lookup(resolving, name)
	if err != nil {
		return state.ProbeResult{Step: state.ProbeUnresolved, Error: err.Error()}
	}
	result := state.ProbeResult{Step: state.ProbeFailed, Address: addresses[0], Error: "the pod has no route to it"}
	for _, address := range addresses {
		server := net.JoinHostPort(address, strconv.Itoa(port))
		// Connecting a UDP socket sends nothing, and fails if the pod lacks this family of addresses.
		socket, err := net.Dial("udp", server)
		if err != nil {
			continue
		}
		_ = socket.Close()
		for _, size := range []int{smallSize, largeSize} {
			if err := exchange(ctx, server, identity, size); err != nil {
				return state.ProbeResult{Step: stepOf(err, size), Address: address, Error: err.Error()}
			}
		}
		result = state.ProbeResult{Step: state.ProbeOK, Address: address}
	}
	return result
}

// exchange sends bytes to a server, which must return them with its identity. Each exchange has its own connection.
func exchange(ctx context.Context, server, identity string, size int) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+server, bytes.NewReader(make([]byte, size)))
	if err != nil {
		return err
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if by := response.Header.Get(identityHeader); by != identity {
		return fmt.Errorf("%s answers instead of %s", cmp.Or(by, "another program"), identity)
	}
	received, err := io.ReadAll(io.LimitReader(response.Body, largeSize))
	if err == nil && len(received) != size {
		err = fmt.Errorf("%d of %d bytes returned", len(received), size)
	}
	return err
}

func stepOf(err error, size int) state.ProbeStep {
	switch {
	case size == largeSize:
		return state.ProbeLargeLost
	case errors.Is(err, context.DeadlineExceeded):
		return state.ProbeTimeout
	}
	return state.ProbeFailed
}
