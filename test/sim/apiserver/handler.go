// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"io"
	"maps"
	"net/http"
)

// ServeHTTP serves clients that connect over a network. The name that they
// reach the server by is the Host of their requests.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	outgoing := req.Clone(req.Context())
	outgoing.URL.Host = req.RemoteAddr
	response, err := s.RoundTrip(outgoing)
	if err != nil {
		panic(http.ErrAbortHandler) // nobody waits for it, or it is to see no answer
	}
	defer response.Body.Close()
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	flusher := http.NewResponseController(w)
	if flusher.Flush() != nil {
		return
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := response.Body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return
			}
			if flusher.Flush() != nil {
				return
			}
		}
		if err != nil {
			if err != io.EOF {
				panic(http.ErrAbortHandler) // the stream ends as it is
			}
			return
		}
	}
}
