// SPDX-License-Identifier: Apache-2.0

package member

import (
	"maps"
	"net/http"
	"slices"
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

// TestRequests: every list and every watch asks the server of a member for its published slices and its heartbeat alone, in
// pages: slices that are not exported are never sent. What another cluster under the same id says is looked at by nobody
// before its UID is known. Each member has one HTTP/2 connection, of which the heartbeat is a proof.
func TestRequests(t *testing.T) {
	seen, watches, listed := make(chan string, 100), make(chan string, 100), make(chan struct{})
	var once sync.Once
	var connections sync.Map
	server := listening(t, func(w http.ResponseWriter, r *http.Request) {
		if connections.Store(r.RemoteAddr, true); r.ProtoMajor != 2 {
			t.Errorf("a request by %s", r.Proto)
		}
		query := r.URL.Query()
		verb, resource := "list", r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		if query.Get("watch") == "true" {
			verb = "watch"
		}
		request := strings.Join([]string{
			r.Method, verb, r.URL.Path, "labels:" + query.Get("labelSelector"), "fields:" + query.Get("fieldSelector"),
		}, " ")
		if seen <- request; verb == "list" && query.Get("limit") == "" {
			t.Errorf("%s has no limit", request)
		}
		if resource == "leases" {
			// The list of the heartbeat is later than that of slices.
			select {
			case <-listed:
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		if verb == "watch" {
			_ = http.NewResponseController(w).Flush()
			watches <- resource
			<-r.Context().Done()
			return
		}
		var list runtime.Object = &discoveryv1.EndpointSliceList{
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []discoveryv1.EndpointSlice{*slice("one", "web", "1")},
		}
		if resource == "leases" {
			list = &coordinationv1.LeaseList{
				ListMeta: metav1.ListMeta{ResourceVersion: "1"},
				Items: []coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{
					Name: HeartbeatLease, ResourceVersion: "1", Annotations: map[string]string{HeartbeatUIDAnnotation: "another"},
				}}},
			}
		}
		_, _ = w.Write(encode(t, list)) // the client may hang up
		if resource != "leases" {
			once.Do(func() { close(listed) })
		}
	})

	events := make(chan string, 100)
	m := unheard(clock.RealClock{})
	m.heartbeat.read = func(is Heartbeat, _ bool) { events <- "read " + is.KubeSystemUID }
	m.slices.listing = func([]types.NamespacedName) { events <- "listing" }
	stop := reading(t, m, server)
	stopOther := reading(t, unheard(clock.RealClock{}), server)
	if first := receive(t, events); first != "read another" {
		t.Errorf("first there was %q", first)
	}
	for receive(t, events) != "listing" {
		continue // the watch of the heartbeat reads it, too
	}
	for watched := map[string]int{}; watched["leases"] < 2 || watched["endpointslices"] < 2; {
		watched[receive(t, watches)]++
	}
	made := 0
	connections.Range(func(any, any) bool { made++; return true })
	if made != 2 {
		t.Errorf("two members have %d connections", made)
	}
	stop()
	stopOther()
	requests := map[string]bool{}
	for len(seen) > 0 {
		requests[<-seen] = true
	}
	const published = " /apis/discovery.k8s.io/v1/endpointslices labels:multicluster.kubernetes.io/source-cluster=west fields:"
	const heartbeat = " /apis/coordination.k8s.io/v1/namespaces/clusterset-dns/leases labels: fields:metadata.name=clusterset-dns-heartbeat"
	want := []string{"GET list" + heartbeat, "GET list" + published, "GET watch" + heartbeat, "GET watch" + published}
	if got := slices.Sorted(maps.Keys(requests)); !slices.Equal(got, want) {
		t.Errorf("requests are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
