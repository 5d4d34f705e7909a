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
	// maxAnswer bounds an answer that is no watch, in bytes once it is decompressed. What it takes in memory is bounded
	// by maxDecoded.
	maxAnswer = 4 << 20
	// maxRefusal bounds an answer that is an error, in bytes.
	maxRefusal = 64 << 10
	// maxOther bounds an event of a watch that has no slice, in bytes.
	maxOther = 16 << 10
	// frameHeader is the length of what begins each event of a watch: its length, in network byte order.
	frameHeader = 4
)

// errTooLarge is of an answer that has more bytes than are read of one, or would take more once it is decoded.
var errTooLarge = errors.New("the answer is too large")

// bounded reads no more of what a member answers than it may send at once: a whole answer, or one event of a watch.
// What it hands on takes a bounded amount of memory once it is decoded. It takes no object in another form than
// protobuf, which the requests ask for.
type bounded struct {
	base http.RoundTripper
	// event is how many bytes one event of a watch may have.
	event int
	// patience is how much longer a watch may last than was asked for.
	patience time.Duration
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.base.RoundTrip(request)
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
		response.Body = &frames{ReadCloser: response.Body, limit: b.event, end: b.endOf(request, response.Body)}
		return response, nil
	}
	if err := takeTurn(request.Context()); err != nil {
		response.Body.Close()
		return nil, err
	}
	limit := maxAnswer
	if !ok {
		limit = maxRefusal
	}
	whole, err := io.ReadAll(io.LimitReader(response.Body, int64(limit)+1))
	response.Body.Close()
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

// endOf ends a watch that its server does not end when it was asked to: what stands between may have lost it. The
// server ends one that was asked for without an end.
func (b *bounded) endOf(request *http.Request, body io.Closer) *time.Timer {
	seconds, err := strconv.Atoi(request.URL.Query().Get("timeoutSeconds"))
	if err != nil {
		return nil
	}
	return time.AfterFunc(time.Duration(seconds)*time.Second+b.patience, func() { body.Close() })
}

// frames is the body of a watch. It hands on whole events, of which none is longer than the limit or takes more memory
// than maxDecoded.
type frames struct {
	io.ReadCloser
	limit int
	end   *time.Timer // nil where there is none

	event bytes.Buffer // what is left of the event that is being read
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

// next reads an event and its header. Memory is taken as the event arrives.
func (f *frames) next() error {
	if f.event.Cap() > maxOther {
		f.event = bytes.Buffer{}
	}
	f.event.Reset()
	if _, err := io.CopyN(&f.event, f.ReadCloser, frameHeader); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(f.event.Bytes())
	if uint64(length) > uint64(f.limit) {
		return fmt.Errorf("an event of the watch has %d bytes, and may have %d", length, f.limit)
	}
	if _, err := io.CopyN(&f.event, f.ReadCloser, int64(length)); err != nil {
		return err
	}
	if err := checkEvent(f.event.Bytes()[frameHeader:]); err != nil {
		return fmt.Errorf("an event of the watch: %w", err)
	}
	return nil
}
