// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// TestRequests: every list and every watch asks the server of a member for its published slices and its heartbeat alone, in
// pages: slices that are not exported are never sent. A list from another cluster with the same id is not visible before its
// UID is known. Each member has one HTTP/2 connection, which a heartbeat proves to be alive.
func TestRequests(t *testing.T) {
	events, listed := make(chan string, 100), make(chan struct{})
	list := sync.OnceFunc(func() { close(listed) })
	var mu sync.Mutex
	requests, connections := map[string]bool{}, map[string]bool{}
	objects := map[string][]byte{
		"endpointslices": encode(t, &discoveryv1.EndpointSliceList{
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []discoveryv1.EndpointSlice{*slice("one", "web", "1")},
		}),
		"leases": encode(t, &coordinationv1.LeaseList{
			ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			Items: []coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{
				Name: HeartbeatLease, ResourceVersion: "1", Annotations: map[string]string{HeartbeatUIDAnnotation: "another"},
			}}},
		}),
	}
	server := listening(t, func(w http.ResponseWriter, r *http.Request) {
		verb, resource, query := "list", path.Base(r.URL.Path), r.URL.Query()
		if query.Get("watch") == "true" {
			verb = "watch"
		}
		mu.Lock()
		requests[fmt.Sprintf("%s %s %s labels:%s fields:%s", r.Method, verb, r.URL.Path, query.Get("labelSelector"),
			query.Get("fieldSelector"))] = true
		connections[r.RemoteAddr] = true
		mu.Unlock()
		if r.ProtoMajor != 2 || verb == "list" && query.Get("limit") == "" {
			t.Errorf("%s by %s, or it has no limit", r.URL, r.Proto)
		}
		if resource == "leases" { // the heartbeat is answered after the slices
			select {
			case <-listed:
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		if verb == "list" {
			_, _ = w.Write(objects[resource]) // the client may hang up
		}
		if resource != "leases" {
			list()
		}
		if verb == "watch" {
			_ = http.NewResponseController(w).Flush()
			events <- "watch " + resource
			<-r.Context().Done()
		}
	})

	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	for range 2 {
		var known atomic.Bool
		m := (&surroundings{
			heard: func(is Heartbeat, _ bool) { known.Store(is.KubeSystemUID == "another") },
			listed: func(uid string, _ []types.NamespacedName) {
				if !known.Load() || uid != "another" {
					t.Error("slices are listed, and it is not known whose they are")
				}
				events <- "listing"
			},
		}).west()
		m.source.Load().credential = Credential{Namespace: "clusterset-dns", Config: &rest.Config{
			Host: server.URL, BearerToken: "t", TLSClientConfig: rest.TLSClientConfig{CAData: authorityOf(server)},
		}}
		reading.Go(func() { m.run(ctx) })
	}
	for seen := map[string]int{}; seen["listing"] < 2 || seen["watch leases"] < 2 || seen["watch endpointslices"] < 2; {
		select {
		case event := <-events:
			seen[event]++
		case <-time.After(time.Minute):
			t.Fatalf("within a minute, there were only %v", seen)
		}
	}
	stop()
	reading.Wait()
	if len(connections) != 2 {
		t.Errorf("two members have %d connections", len(connections))
	}
	const published = " /apis/discovery.k8s.io/v1/endpointslices labels:multicluster.kubernetes.io/source-cluster=west fields:"
	const heartbeat = " /apis/coordination.k8s.io/v1/namespaces/clusterset-dns/leases labels: fields:metadata.name=clusterset-dns-heartbeat"
	want := []string{"GET list" + heartbeat, "GET list" + published, "GET watch" + heartbeat, "GET watch" + published}
	if got := slices.Sorted(maps.Keys(requests)); !slices.Equal(got, want) {
		t.Errorf("requests are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
