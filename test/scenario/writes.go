// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// conflicts is what writes that were refused as stale are counted as, too.
const conflicts = "conflicts"

// asked counts the writes that the controllers of the cluster asked its API server for, by method and resource, and the
// conflicts among them, without Leases, Events and dry runs. They are counted on the way there, so that nobody else's are
// among them.
func (c *Cluster) asked() map[string]int {
	counts := map[string]int{}
	for _, p := range c.processes {
		p.mu.Lock()
		counts[conflicts] += p.conflicts
		p.mu.Unlock()
		for _, write := range p.Writes() {
			if name := nameOf(write); name != "" {
				counts[name]++
			}
		}
	}
	return counts
}

// refuse has an admission controller forbid a write; an empty name ends that.
func (c *Cluster) refuse(name string) { c.refused.Store(name) }

func forbidden(request *http.Request) *http.Response {
	const text = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"exceeded quota","reason":"Forbidden","code":403}`
	return &http.Response{
		StatusCode: http.StatusForbidden, Proto: "HTTP/2.0", ProtoMajor: 2, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)),
	}
}

// nameOf is how a write is counted, empty for what is not.
func nameOf(write string) string {
	method, path, _ := strings.Cut(write, " ")
	for part := range strings.SplitSeq(path, "/") {
		switch part {
		case "services", "endpointslices", "serviceimports", "serviceexports":
			return method + " " + part
		}
	}
	return ""
}

// longest is more than the longest interval after which a controller looks at a service again by itself.
const longest = 12 * time.Second

// Quiet waits until the controllers of the clusters, all if none is named, ask for no write for some time.
func (s *Set) Quiet(clusters ...*Cluster) {
	clusters, before := s.or(clusters), ""
	s.Eventually("rest", func() error {
		s.Pass(longest)
		last := before
		if before = written(clusters); before != last {
			return fmt.Errorf("writes go on:\n%s%s", last, before)
		}
		return nil
	})
}

// written is what the controllers of clusters asked for, as text.
func written(clusters []*Cluster) (text string) {
	for _, c := range clusters {
		text += fmt.Sprintln(c.Name, c.asked())
	}
	return text
}
