// SPDX-License-Identifier: Apache-2.0

package member

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// TestBounded: of what a hostile server sends no more is read than it may send.
func TestBounded(t *testing.T) {
	const event = 1000
	const protobuf, list, watch = "application/vnd.kubernetes.protobuf;stream=watch",
		"application/vnd.kubernetes.protobuf", "?watch=true"
	frame := func(length int) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(length))) + padded("", min(length, 2*event))
	}
	page := string(encode(t, &discoveryv1.EndpointSliceList{}))
	for name, test := range map[string]struct {
		query, form, body string
		status            int
		wrong             string // part of the error
		tooLarge          bool
	}{
		"a list": {form: list, body: padded(page, maxAnswer)},
		"a list that is too large": {
			form: list, body: padded(page, maxAnswer+1),
			wrong: "more than 4194304 bytes", tooLarge: true,
		},
		"a list in JSON":    {form: "application/json", body: "{}", wrong: `"application/json"`},
		"a list in no form": {form: " ", body: "x", wrong: "the form"},
		"a page that unfolds": {
			form: list, body: string(encode(t, empties(maxDecoded/40))),
			wrong: "once it is decoded", tooLarge: true,
		},
		"another kind":            {form: list, body: page + "\x0a\x09\x12\x07PodList", wrong: `"PodList"`},
		"a watch":                 {query: watch, form: protobuf, body: strings.Repeat(frame(event), 100)},
		"a watch of empty events": {query: watch, form: protobuf, body: frame(0) + frame(0)},
		"a large event": {
			query: watch, form: protobuf, body: frame(10) + frame(event+1),
			wrong: "has 1001 bytes, and may have 1000",
		},
		"an event without end": {
			query: watch, form: protobuf, body: frame(1<<32 - 1),
			wrong: "has 4294967295 bytes",
		},
		"a refusal of a watch": {query: watch, form: "application/json", status: 403, body: "{}"},
		"a refusal of a watch, too large": {
			query: watch, status: 500, body: strings.Repeat("x", maxRefusal+1),
			tooLarge: true, wrong: "too large",
		},
		"a refusal of another kind": {
			form: list, status: 500, body: page + "\x0a\x09\x12\x07PodList",
			wrong: `"PodList"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.form)
				w.WriteHeader(max(test.status, 200))
				_, _ = io.WriteString(w, test.body) // the client may hang up
			}))
			defer server.Close()
			client := &http.Client{Transport: &frameLimiter{base: http.DefaultTransport, event: event}}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/"+test.query,
				http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			var got []byte
			if err == nil {
				got, err = io.ReadAll(iotest.OneByteReader(response.Body))
				response.Body.Close()
			}
			switch {
			case test.wrong == "" && (err != nil || string(got) != test.body):
				t.Errorf("read %d of %d bytes, and %v", len(got), len(test.body), err)
			case test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong) || len(got) > 2*event):
				t.Errorf("read %d bytes, and %v, want an error with %q", len(got), err, test.wrong)
			case errors.Is(err, errTooLarge) != test.tooLarge:
				t.Errorf("got %v", err)
			}
		})
	}
}
