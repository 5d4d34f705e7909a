// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// Through starts a proxy with its own certificate in front of the API server.
func (b *realBed) Through(t *testing.T, _, source string, gateway *scenario.Gateway) []byte {
	plane := b.planes[source]
	target, err := url.Parse(plane.URL())
	must(t, err)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(plane.Config()))
	must(t, err)
	quiet := log.New(io.Discard, "", 0)
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(target)
			gateway.Ask(request.Out.Header)
		},
		Transport: transport, FlushInterval: -1, ErrorLog: quiet, ModifyResponse: gateway.Answer,
	})
	server.EnableHTTP2, server.Config.ErrorLog = true, quiet
	server.Config.BaseContext = func(net.Listener) context.Context { return t.Context() } // watches end with the test
	server.StartTLS()
	t.Cleanup(server.Close)
	return credential(t, plane, server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}
