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
	// maxAnswer bounds an answer that is no watch, in bytes once it is
	// decompressed. What comes of it in memory is a multiple of that.
	maxAnswer = 4 << 20
	// maxOther bounds an event of a watch that has no slice, in bytes.
	maxOther = 16 << 10
	// frameHeader is the length of what begins each event of a watch: its
	// length, in network byte order.
	frameHeader = 4
)

// errTooLarge is of an answer that has more bytes than are read of one.
var errTooLarge = errors.New("the answer is too large")

// bounded reads no more of what a member answers than it may send at once: a
// whole answer, or one event of a watch. It asks for protobuf, and takes no
// watch in another form.
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
	if request.URL.Query().Get("watch") == "true" && response.StatusCode == http.StatusOK {
		form := response.Header.Get("Content-Type")
		if media, _, err := mime.ParseMediaType(form); err != nil || media != runtime.ContentTypeProtobuf {
			response.Body.Close()
			return nil, fmt.Errorf("the API server answers a watch in the form %.100q instead of %s", form, runtime.ContentTypeProtobuf)
		}
		response.Body = &frames{ReadCloser: response.Body, limit: b.event, end: b.endOf(request, response.Body)}
		return response, nil
	}
	whole, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	if len(whole) > maxAnswer {
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, maxAnswer)
	}
	response.Body = io.NopCloser(bytes.NewReader(whole))
	return response, nil
}

// endOf ends a watch that its server does not end when it was asked to: what
// stands between may have lost it. The server ends one that was asked for
// without an end.
func (b *bounded) endOf(request *http.Request, body io.Closer) *time.Timer {
	seconds, err := strconv.Atoi(request.URL.Query().Get("timeoutSeconds"))
	if err != nil {
		return nil
	}
	return time.AfterFunc(time.Duration(seconds)*time.Second+b.patience, func() { body.Close() })
}

// frames is the body of a watch, of which no event is longer than the limit.
type frames struct {
	io.ReadCloser
	limit int
	end   *time.Timer // nil where there is none

	header []byte // as far as it was read
	left   int    // of the event that is being read
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
	n, err := f.ReadCloser.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		if f.left > 0 {
			skip := min(f.left, len(rest))
			f.left -= skip
			rest = rest[skip:]
			continue
		}
		f.header, rest = append(f.header, rest[0]), rest[1:]
		if len(f.header) < frameHeader {
			continue
		}
		length := binary.BigEndian.Uint32(f.header)
		if uint64(length) > uint64(f.limit) {
			return 0, fmt.Errorf("an event of the watch has %d bytes, and may have %d", length, f.limit)
		}
		f.header, f.left = f.header[:0], int(length)
	}
	return n, err
}
