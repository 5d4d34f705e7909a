// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
)

// ServeHTTP serves clients that connect over a network. Their address is the Host of their requests.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Host = r.In.RemoteAddr },
		// Nobody waits for the answer, or it is to see none.
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		Transport:     s,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}).ServeHTTP(w, req)
}
