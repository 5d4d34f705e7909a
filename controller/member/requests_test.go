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

// TestRequestsSelectWhatIsExported: every list and every watch asks the server of a member for its published slices and
// its heartbeat alone, in pages. The server filters, so that slices that are not exported are never sent.
func TestRequestsSelectWhatIsExported(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	watches := make(chan string, 100)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		resource, watch := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], query.Get("watch") == "true"
		verb := "list"
		if watch {
			verb = "watch"
		}
		request := strings.Join([]string{r.Method, verb, r.URL.Path, "labels:" + query.Get("labelSelector"), "fields:" +
			query.Get("fieldSelector")}, " ")
		mu.Lock()
		seen[request] = true
		mu.Unlock()
		if !watch && query.Get("limit") == "" {
			t.Errorf("%s has no limit", request)
		}
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		if watch {
			_ = http.NewResponseController(w).Flush()
			watches <- resource
			<-r.Context().Done()
			return
		}
		var list runtime.Object = &discoveryv1.EndpointSliceList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		if resource == "leases" {
			list = &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		}
		_, _ = w.Write(encode(t, list)) // the client may hang up
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	m := newMember("west", clock.RealClock{}, func(types.NamespacedName) {}, func() {}, func(error) {})
	stop := reading(t, m, server)
	for watched := map[string]bool{}; len(watched) < 2; {
		watched[receive(t, watches)] = true
	}
	stop()

	want := map[string]bool{}
	for _, verb := range []string{"list", "watch"} {
		want["GET "+verb+
			" /apis/discovery.k8s.io/v1/endpointslices labels:multicluster.kubernetes.io/source-cluster=west fields:"] = true
		want["GET "+verb+" /apis/coordination.k8s.io/v1/namespaces/clusterset-dns/leases labels: fields:metadata.name=clusterset-dns-heartbeat"] = true
	}
	mu.Lock()
	defer mu.Unlock()
	for request := range seen {
		if !want[request] {
			t.Errorf("unexpected request: %s", request)
		}
	}
	for request := range want {
		if !seen[request] {
			t.Errorf("the request was not made: %s", request)
		}
	}
}
