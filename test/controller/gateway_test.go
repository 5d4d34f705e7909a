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
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// Through has a proxy with a certificate of its own in front of the API server.
func (b *realBed) Through(t *testing.T, reader, source string, gateway *scenario.Gateway) []byte {
	t.Helper()
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
	return b.credential(t, reader, source, func(kubeconfig *clientcmdapi.Config) {
		for _, each := range kubeconfig.Clusters {
			each.Server = server.URL
			each.CertificateAuthorityData = pem.EncodeToMemory(
				&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		}
	})
}

// credential is a new kubeconfig with which the reader may read the source over the link between them, with changes.
func (b *realBed) credential(t *testing.T, reader, source string, change func(*clientcmdapi.Config)) []byte {
	t.Helper()
	text, err := b.remote(reader, source).ServiceAccountKubeconfig(t.Context(), system, memberName)
	must(t, err)
	kubeconfig, err := clientcmd.Load(text)
	must(t, err)
	change(kubeconfig)
	text, err = clientcmd.Write(*kubeconfig)
	must(t, err)
	return text
}
