// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// A swallower is an API server behind something that answers the probes of a
// connection, and loses the first requests of each kind.
type swallower struct {
	t  *testing.T
	mu sync.Mutex
	// asked counts the requests of a kind: "list endpointslices", and so on.
	asked map[string]int
}

func (s *swallower) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	watch := r.URL.Query().Get("watch") == "true"
	kind := "list " + resource
	if watch {
		kind = "watch " + resource
	}
	s.mu.Lock()
	s.asked[kind]++
	asked := s.asked[kind]
	s.mu.Unlock()
	if asked == 1 {
		<-r.Context().Done()
		return
	}
	object := map[string]runtime.Object{
		"list endpointslices":  &discoveryv1.EndpointSliceList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}},
		"list leases":          &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}},
		"watch endpointslices": slice("one", "web", "2"),
		"watch leases": &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name:            HeartbeatLease,
			ResourceVersion: "2",
		}},
	}[kind]
	encoded := encode(s.t, object)
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	if watch {
		event, err := (&metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: encoded}}).Marshal()
		if err != nil {
			s.t.Error(err)
		}
		encoded = append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
	}
	if !watch && asked == 2 {
		encoded = encoded[:len(encoded)/2]
	}
	_, _ = w.Write(encoded) // the client may hang up
	_ = http.NewResponseController(w).Flush()
	if watch || asked == 2 {
		<-r.Context().Done()
	}
}

// encode is an object as an API server sends it.
func encode(t testing.TB, object runtime.Object) []byte {
	form := scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme),
		schema.GroupVersions{authenticationv1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion})
	encoded, err := runtime.Encode(form, object)
	if err != nil {
		t.Error(err)
	}
	return encoded
}

// credentialOf is one for the server.
func credentialOf(server *httptest.Server) Credential {
	return Credential{Namespace: "clusterset-dns", Config: &rest.Config{
		Host: server.URL, BearerToken: "t",
		TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
	}}
}

// listening starts an API server over HTTP/2, which ends with the test.
func listening(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(answer)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// unheard is the member west, of which nobody is told anything.
func unheard(now clock.WithTicker) *Member {
	return newMember("west", now, func(types.NamespacedName) {}, func() {}, func(error) {})
}

// reading has a member read the server until the returned function is called.
func reading(t *testing.T, m *Member, server *httptest.Server) (stop func()) {
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.run(ctx, credentialOf(server)) }()
	return func() {
		leave()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestSwallowedRequests: a member is read in the end, and the connection was never lost.
func TestSwallowedRequests(t *testing.T) {
	server := listening(t, (&swallower{t: t, asked: map[string]int{}}).ServeHTTP)
	told, changed, heard := make(chan error, 100), make(chan types.NamespacedName, 100), make(chan string, 100)
	m := newMember("west", clock.RealClock{}, func(service types.NamespacedName) { changed <- service }, func() {},
		func(err error) { told <- err })
	m.patience = 200 * time.Millisecond
	m.heartbeat.read = func(is Heartbeat, _ bool) { heard <- is.KubeSystemUID }
	defer reading(t, m, server)()
	receive(t, changed)
	receive(t, heard)
	if err := receive(t, told); err == nil {
		t.Error("a problem without an error")
	}
}

// receive receives what is sent within a minute.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case received := <-from:
		return received
	case <-time.After(time.Minute):
		t.Fatal("nothing came within a minute")
		panic("not reached")
	}
}

// TestWatchThatNobodyEnds: it ends.
func TestWatchThatNobodyEnds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	client := &http.Client{
		Transport: &frameLimiter{base: http.DefaultTransport, event: 1, patience: 100 * time.Millisecond},
	}
	begin := time.Now()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/?watch=true&timeoutSeconds=1",
		http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got, err := io.ReadAll(response.Body); err == nil || len(got) > 0 {
		t.Errorf("read %d bytes, and %v", len(got), err)
	}
	if lasted := time.Since(begin); lasted < 1100*time.Millisecond {
		t.Errorf("it lasted %s", lasted)
	}
}

// TestSliceThatNobodyCanRead: that is said, and so is what follows.
func TestSliceThatNobodyCanRead(t *testing.T) {
	store := newSliceStore(func(types.NamespacedName) {}, func() {})
	_, err := listSelection(t.Context(), &pages{}, metav1.ListOptions{Limit: pageSize}, store, confirmed)
	m := unheard(clock.RealClock{})
	m.outcome(watchedSlices)(err)
	if problem := m.Problem(); !errors.Is(problem, errTooLarge) ||
		!strings.Contains(problem.Error(), "one EndpointSlice") {
		t.Errorf("got %v", problem)
	}
}
