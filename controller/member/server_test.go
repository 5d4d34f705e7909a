// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// encode is an object as an API server sends it.
func encode(t testing.TB, object runtime.Object) []byte {
	form := scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme),
		schema.GroupVersions{corev1.SchemeGroupVersion, authenticationv1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion})
	encoded, err := runtime.Encode(form, object)
	if err != nil {
		t.Error(err)
	}
	return encoded
}

// sent is the body of an answer.
func sent(t testing.TB, object runtime.Object) io.ReadCloser {
	return io.NopCloser(bytes.NewReader(encode(t, object)))
}

// authorityOf is the authority of a server's certificate.
func authorityOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
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

// connected connects a member to a server by a transport.
func connected(t *testing.T, m *Member, host string, transport http.RoundTripper) *Member {
	t.Helper()
	must(t, m.connect(&rest.Config{Host: host}, &http.Client{Transport: transport}))
	return m
}

// must ends the test if there is an error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
