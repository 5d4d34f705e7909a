// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// maxAnswer bounds a response other than a watch, in bytes after decompression; maxDecoded bounds its memory.
	maxAnswer = 4 << 20
	// maxRefusal bounds an error response, in bytes: logs have it, quoted.
	maxRefusal = 4 << 10
	// maxOther bounds a watch event without a slice, in bytes.
	maxOther = 16 << 10
	// frameHeader is the size of the header of a watch event: the event's length in network byte order.
	frameHeader = 4
)

// errTooLarge reports a response that exceeds maxAnswer or maxDecoded.
var errTooLarge = errors.New("the answer is too large")

// A frameLimiter bounds what is read of a member at once, a whole response or one watch event, before and after
// decoding. It refuses objects in other encodings than protobuf, which the requests ask for.
type frameLimiter struct {
	base http.RoundTripper
	// event bounds one watch event, in bytes.
	event int
}

// RoundTrip implements http.RoundTripper.
func (l *frameLimiter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.base.RoundTrip(request)
	if err != nil {
		return response, err
	}
	ok := response.StatusCode == http.StatusOK
	if form := response.Header.Get("Content-Type"); ok && !isProtobuf(form) {
		response.Body.Close()
		return nil, fmt.Errorf("the API server answers in the form %.100q instead of %s", form,
			runtime.ContentTypeProtobuf)
	}
	if ok && request.URL.Query().Get("watch") == "true" {
		response.Body = &frames{ReadCloser: response.Body, limit: l.event, end: endOf(request, response.Body)}
		return response, nil
	}
	limit := maxRefusal // which client-go may wait for long after
	if ok {
		limit = maxAnswer
		if err := takeTurn(request.Context()); err != nil {
			response.Body.Close()
			return nil, err
		}
	}
	whole, err := readWithin(response.Body, limit, pageWithin)
	if err != nil {
		return nil, err
	}
	if len(whole) > limit {
		return nil, fmt.Errorf("%w: more than %d bytes, status %d", errTooLarge, limit, response.StatusCode)
	}
	if isProtobuf(response.Header.Get("Content-Type")) {
		if err := checkObject(whole); err != nil {
			return nil, err
		}
	}
	response.Body = io.NopCloser(bytes.NewReader(whole))
	return response, nil
}

// isProtobuf reports whether a Content-Type is the protobuf form of Kubernetes.
func isProtobuf(form string) bool {
	media, _, err := mime.ParseMediaType(form)
	return err == nil && media == runtime.ContentTypeProtobuf
}

// endOf closes a watch that outlasts its timeoutSeconds by patience: a proxy may have lost it. It returns nil for a watch
// without a timeout.
func endOf(request *http.Request, body io.Closer) *time.Timer {
	seconds, err := strconv.Atoi(request.URL.Query().Get("timeoutSeconds"))
	if err != nil {
		return nil
	}
	return time.AfterFunc(time.Duration(seconds)*time.Second+patience, func() { body.Close() })
}

// frames is the body of a watch. It passes on whole events within the limit and maxDecoded.
type frames struct {
	io.ReadCloser
	limit int
	end   *time.Timer // optional

	event bytes.Buffer // the unread part of the current event
	err   error
}

// Close implements io.Closer.
func (f *frames) Close() error {
	if f.end != nil {
		f.end.Stop()
	}
	return f.ReadCloser.Close()
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	if f.event.Len() == 0 && f.err == nil {
		f.err = f.next()
	}
	if f.err != nil {
		return 0, f.err
	}
	return f.event.Read(p)
}

// next reads an event and its header. The buffer grows as the event arrives.
func (f *frames) next() error {
	if f.event.Cap() > maxOther {
		f.event = bytes.Buffer{}
	}
	f.event.Reset()
	if _, err := io.CopyN(&f.event, f.ReadCloser, frameHeader); err != nil {
		return broken(err)
	}
	length := binary.BigEndian.Uint32(f.event.Bytes())
	if uint64(length) > uint64(f.limit) {
		return fmt.Errorf("an event of the watch has %d bytes, and may have %d", length, f.limit)
	}
	if _, err := io.CopyN(&f.event, f.ReadCloser, int64(length)); err != nil {
		return broken(err)
	}
	if err := checkEvent(f.event.Bytes()[frameHeader:]); err != nil {
		return fmt.Errorf("an event of the watch: %w", err)
	}
	return nil
}

// broken returns the error of a watch that the connection ended. client-go takes some errors of connections for events.
func broken(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return io.ErrUnexpectedEOF
}
