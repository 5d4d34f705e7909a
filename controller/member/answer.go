// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxAnswer bounds a response other than a watch, in bytes after decompression; maxDecoded bounds its memory.
	maxAnswer = 4 << 20
	// maxRefusal bounds an error response, in bytes, because logs quote it. It bounds the response to a TokenRequest, too. So
	// little takes little memory once it is decoded.
	maxRefusal = 4 << 10
	// maxOther bounds a watch event without a slice, in bytes.
	maxOther = 16 << 10
	// frameHeader is the size of the header of a watch event: the event's length in network byte order.
	frameHeader = 4
	// longestWait bounds Retry-After, in seconds: client-go waits up to ten times before it returns the error, for patience in
	// total.
	longestWait = int(patience/time.Second) / 10
)

// errTooLarge reports a response that exceeds maxAnswer or maxDecoded, and errLate one that took longer than pageWithin.
var (
	errTooLarge = errors.New("the answer is too large")
	errLate     = errors.New("the answer takes too long")
)

// read reads a body of at most limit bytes within pageWithin, and closes it.
func read(body io.ReadCloser, limit int) ([]byte, error) {
	late := time.AfterFunc(pageWithin, func() { _ = body.Close() })
	defer body.Close()
	whole, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	switch {
	case !late.Stop() && err != nil:
		return nil, fmt.Errorf("%w: more than %s", errLate, pageWithin)
	case err != nil:
		return nil, err
	case len(whole) > limit:
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, limit)
	}
	return whole, nil
}

// bounded bounds the responses that client-go reads itself (errors and tokens), and how long it waits after an error.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err != nil || response.StatusCode/100 == 2 && request.Method == http.MethodGet {
		return response, err
	}
	if after, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && after > longestWait {
		response.Header.Del("Retry-After") // client-go returns the error at once; the caller retries with backoff
	}
	whole, err := read(response.Body, maxRefusal)
	if err != nil {
		return nil, fmt.Errorf("status %d: %w", response.StatusCode, err)
	}
	response.Body = io.NopCloser(bytes.NewReader(whole))
	return response, nil
}

// events calls take for each watch event, of at most limit bytes, until an error. The end of the connection is no error.
func events(body io.Reader, limit int, take func(metav1.WatchEvent) error) error {
	var encoded bytes.Buffer // grows as an event arrives
	for {
		if encoded.Cap() > maxOther {
			encoded = bytes.Buffer{}
		}
		encoded.Reset()
		if _, err := io.CopyN(&encoded, body, frameHeader); err != nil {
			return nil //nolint:nilerr // the connection has ended
		}
		length := binary.BigEndian.Uint32(encoded.Next(frameHeader))
		if uint64(length) > uint64(limit) {
			return fmt.Errorf("an event of the watch has %d bytes, and may have %d", length, limit)
		}
		if _, err := io.CopyN(&encoded, body, int64(length)); err != nil {
			return nil //nolint:nilerr // the connection has ended
		}
		var event metav1.WatchEvent
		if event.Unmarshal(encoded.Bytes()) != nil {
			return fmt.Errorf("an event of the watch: %w", errMalformed)
		}
		if err := take(event); err != nil {
			return fmt.Errorf("an event of the watch: %w", err)
		}
	}
}
