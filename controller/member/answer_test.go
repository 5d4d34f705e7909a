// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// event returns an encoded watch event of at least length bytes.
func event(t *testing.T, kind string, object []byte, length int) string {
	t.Helper()
	encoded, err := (&metav1.WatchEvent{Type: kind, Object: apiruntime.RawExtension{Raw: object}}).Marshal()
	must(t, err)
	text := padded(string(encoded), max(len(encoded), length))
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

// TestBounded: the client reads no more bytes from a hostile server than the limits allow, and only objects that it requested. It
// logs no warnings of the server.
func TestBounded(t *testing.T) {
	var log bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	defer klog.LogToStderr(true)
	const most = maxOther + 2*100
	page, one := string(encode(t, &discoveryv1.EndpointSliceList{})), encode(t, slice("one", "web", "2"))
	pods := append([]byte(page), "\x0a\x09\x12\x07PodList"...)
	for name, test := range map[string]struct {
		body   string
		watch  bool
		status int
		token  bool   // a token is requested
		wrong  string // part of the error
		events int
	}{
		"a list":                          {body: padded(page, maxAnswer)},
		"a list that is too large":        {body: padded(page, maxAnswer+1), wrong: "too large: more than 4194304 bytes"},
		"a list in JSON":                  {body: "{}", wrong: "protobuf"},
		"a page that unfolds":             {body: string(encode(t, empties(maxDecoded/40))), wrong: "too large: it takes more than"},
		"another kind":                    {body: string(pods), wrong: `"PodList"`},
		"a watch":                         {watch: true, body: strings.Repeat(event(t, "MODIFIED", one, most), 100), events: 100},
		"a watch that breaks":             {watch: true, body: event(t, "ADDED", one, 0) + "\x00\x00\x01\x00x", events: 1},
		"bookmarks and what is deleted":   {watch: true, body: event(t, "BOOKMARK", one, 0) + event(t, "DELETED", one, 0), events: 1},
		"an event of nothing":             {watch: true, body: event(t, "", nil, 0), wrong: "protobuf"},
		"garbage for an event":            {watch: true, body: "\x00\x00\x00\x02\x0a\xff", wrong: "protobuf"},
		"an event of another kind":        {watch: true, body: event(t, "ADDED", pods, 0), wrong: `"PodList"`},
		"an error":                        {watch: true, body: event(t, "ERROR", encode(t, &metav1.Status{Message: "gone", Code: 410}), 0), wrong: "gone"},
		"an error of another kind":        {watch: true, body: event(t, "ERROR", pods, 0), wrong: `"PodList"`},
		"a large event":                   {watch: true, body: event(t, "ADDED", one, 0) + event(t, "ADDED", one, most+1), events: 1, wrong: "has 16585 bytes, and may have 16584"},
		"an event without end":            {watch: true, body: "\xff\xff\xff\xff" + strings.Repeat("x", 4*most), wrong: "has 4294967295 bytes"},
		"a token":                         {token: true, status: 201, body: string(encode(t, &authenticationv1.TokenRequest{}))},
		"a token that is too large":       {token: true, body: strings.Repeat("x", maxRefusal+1), wrong: "too large"},
		"another kind than a token":       {token: true, body: string(pods), wrong: `"PodList"`},
		"a refusal of a watch":            {watch: true, status: 403, body: "{}", wrong: "(get endpointslices)"},
		"a refusal of a watch, too large": {watch: true, status: 500, body: strings.Repeat("x", maxRefusal+1), wrong: "too large"},
		"a refusal of another kind":       {status: 500, body: string(pods), wrong: "(get endpointslices)"},
		"a refusal with its reason":       {status: 403, body: string(encode(t, &metav1.Status{Status: "Failure", Message: "no right", Code: 403})), wrong: "no right"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
				w.Header().Set("Warning", `299 - "for the log"`)
				w.WriteHeader(max(test.status, 200))
				_, _ = io.WriteString(w, test.body) // the client may hang up
			}))
			defer server.Close()
			m := (&surroundings{}).west()
			m.Store = limits.NewStore("west", limits.Limits{SliceBytes: 100}, limits.NewPool(0), nil)
			connected(t, m, server.URL, http.DefaultTransport)
			events := 0
			count := func(*discoveryv1.EndpointSlice) { events++ }
			var err error
			switch {
			case test.token:
				_, err = m.core.ServiceAccounts("x").CreateToken(t.Context(), "x", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			case test.watch:
				err = watchFrom(t.Context(), m, watchedSlices, m.slicesRequest, "1", count, count)
			default:
				err = m.page(t.Context(), metav1.ListOptions{}, func(*discoveryv1.EndpointSliceList) {})
			}
			if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) || events != test.events {
				t.Errorf("%d events, want %d; %v, want an error with %q", events, test.events, err, test.wrong)
			}
			if errors.Is(err, errTooLarge) != strings.HasPrefix(test.wrong, "too large") {
				t.Errorf("got %v", err)
			}
		})
	}
	if klog.Flush(); log.Len() > 0 {
		t.Errorf("it logs %s", log.String())
	}
}
