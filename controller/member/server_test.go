// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

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
	return &Member{
		cluster: "west", clock: now, heartbeat: &heartbeat{clock: now}, report: func(error) {}, problems: map[string]error{},
		slices: storing(func(types.NamespacedName) {}),
	}
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
