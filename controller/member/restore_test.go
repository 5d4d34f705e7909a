// SPDX-License-Identifier: Apache-2.0

package member

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// restored is an API server that stops, and comes back from a backup: at an earlier resourceVersion, with other slices.
// As the real one, it has nothing to say to a watch from a version that it has not come to yet.
type restored struct {
	t    *testing.T
	stop chan struct{}

	mu   sync.Mutex
	back bool
}

func (s *restored) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	back := s.back
	s.mu.Unlock()
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	if r.URL.Query().Get("watch") == "true" {
		if !back && strings.HasSuffix(r.URL.Path, "/endpointslices") {
			// Of a watch that ends without an event soon after it began, client-go lists anew by itself.
			event, err := (&metav1.WatchEvent{
				Type:   "ADDED",
				Object: runtime.RawExtension{Raw: encode(s.t, slice("two", "old", "101"))},
			}).Marshal()
			if err != nil {
				s.t.Error(err)
			}
			_, _ = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...))
		}
		_ = http.NewResponseController(w).Flush()
		stop := s.stop
		if back {
			stop = nil
		}
		select {
		case <-stop: // the watch ends
		case <-r.Context().Done():
		}
		return
	}
	version, service := "100", "old"
	if back {
		version, service = "50", "new"
	}
	var object runtime.Object = &discoveryv1.EndpointSliceList{
		ListMeta: metav1.ListMeta{ResourceVersion: version},
		Items:    []discoveryv1.EndpointSlice{*slice("one", service, version)},
	}
	if strings.HasSuffix(r.URL.Path, "/leases") {
		object = &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	}
	_, _ = w.Write(encode(s.t, object)) // the client may hang up
}

// TestARestoredMemberIsListedAnew: what it has now is known, though it says
// nothing of it to who goes on from what it had.
func TestARestoredMemberIsListedAnew(t *testing.T) {
	handler := &restored{t: t, stop: make(chan struct{})}
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	changed := make(chan types.NamespacedName, 100)
	m := newMember("west", clock.RealClock{}, func(service types.NamespacedName) { changed <- service }, func() {},
		func(error) {})
	defer reading(t, m, server)()
	for range 2 { // listed, and watched
		if got := receive(t, changed); got.Name != "old" {
			t.Fatalf("first there was %s", got)
		}
	}
	handler.mu.Lock()
	handler.back = true
	handler.mu.Unlock()
	close(handler.stop)
	for receive(t, changed).Name != "new" {
		continue // the old one goes
	}
}
