// SPDX-License-Identifier: Apache-2.0

package member

import (
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

// TestWhoseSlicesTheyAreIsReadBeforeThem: what another cluster under the same
// id says is looked at by nobody before its UID is known.
func TestWhoseSlicesTheyAreIsReadBeforeThem(t *testing.T) {
	listed := make(chan struct{})
	var once sync.Once
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leases := strings.HasSuffix(r.URL.Path, "/leases")
		if leases {
			// The watch of the heartbeat is later than the list of slices.
			select {
			case <-listed:
			case <-r.Context().Done():
				return
			}
		}
		if r.URL.Query().Get("watch") == "true" {
			w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		var object runtime.Object = &discoveryv1.EndpointSliceList{
			ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			Items:    []discoveryv1.EndpointSlice{*slice("one", "web", "1")},
		}
		if leases {
			object = &coordinationv1.LeaseList{
				ListMeta: metav1.ListMeta{ResourceVersion: "1"},
				Items: []coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{
					Name: HeartbeatLease, ResourceVersion: "1",
					Annotations: map[string]string{HeartbeatUIDAnnotation: "another"},
				}}},
			}
		}
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		_, _ = w.Write(encode(t, object)) // the client may hang up
		if !leases {
			once.Do(func() { close(listed) })
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()

	events := make(chan string, 100)
	m := newMember("west", clock.RealClock{}, func(types.NamespacedName) {}, func() {}, func(error) {})
	m.heartbeat.read = func(is Heartbeat, _ bool) { events <- "read " + is.KubeSystemUID }
	m.slices.listing = func([]types.NamespacedName) { events <- "listing" }
	defer reading(t, m, server)()
	if first := receive(t, events); first != "read another" {
		t.Fatalf("first there was %q", first)
	}
	for receive(t, events) != "listing" {
		continue // the watch of the heartbeat reads it, too
	}
}
