// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"sync"
	"syscall"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// An outage is of some resources of an API server: they cannot be read.
type outage struct {
	mu      sync.Mutex
	away    map[string]bool
	watches map[*body]string
	// refused and read count what was asked for since the outage began.
	refused, read map[string]int
}

// body is that of an answer, which ends where the resource goes away.
type body struct {
	io.ReadCloser
	outage *outage
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.outage.mu.Lock()
		defer b.outage.mu.Unlock()
		if _, ok := b.outage.watches[b]; !ok {
			err = io.EOF
		}
		delete(b.outage.watches, b)
	}
	return n, err
}

func (o *outage) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		resource := path.Base(request.URL.Path)
		o.mu.Lock()
		away := o.away[resource] && request.Method == http.MethodGet
		if away {
			o.refused[resource]++
		}
		o.mu.Unlock()
		if away {
			return nil, syscall.ECONNREFUSED
		}
		response, err := next.RoundTrip(request)
		if err == nil && response.StatusCode == http.StatusOK && request.Method == http.MethodGet {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.read[resource]++
			if request.URL.Query().Get("watch") != "" {
				wrapped := &body{response.Body, o}
				o.watches[wrapped] = resource
				response.Body = wrapped
			}
		}
		return response, err
	})
}

// begin makes the resources go away, and waits until that was noticed.
func (o *outage) begin(t testing.TB, resources ...string) {
	t.Helper()
	o.mu.Lock()
	o.away, o.refused, o.read = map[string]bool{}, map[string]int{}, map[string]int{}
	for _, resource := range resources {
		o.away[resource] = true
	}
	var broken []*body
	for each, resource := range o.watches {
		if o.away[resource] {
			delete(o.watches, each)
			broken = append(broken, each)
		}
	}
	o.mu.Unlock()
	for _, each := range broken {
		must(t, each.Close())
	}
	eventually(t, "outage", func(context.Context) error { return o.asked(&o.refused, resources) })
}

// end brings them back, and waits until they are read.
func (o *outage) end(t testing.TB, resources ...string) {
	t.Helper()
	o.mu.Lock()
	for _, resource := range resources {
		delete(o.away, resource)
	}
	o.mu.Unlock()
	eventually(t, "read again", func(context.Context) error { return o.asked(&o.read, resources) })
}

func (o *outage) asked(counts *map[string]int, resources []string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, resource := range resources {
		if (*counts)[resource] == 0 {
			return fmt.Errorf("nobody asked for %s", resource)
		}
	}
	return nil
}

// TestOutageOfTheOwnAPIServer: a Service that came back while the API server was
// away is not exported with the endpoints of before, though these are read
// again later.
func TestOutageOfTheOwnAPIServer(t *testing.T) {
	east, _ := bed(t)
	away := &outage{watches: map[*body]string{}, read: map[string]int{}}
	east.options.Config.Wrap(away.wrap)
	east.start(t)
	demo := namespace(t, east)
	web := key(demo, "web")
	east.create(t, demo, service("web", "10.64.0.1")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.1]", east)
	must(t, east.CoreV1().Services(demo).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	expectConditions(t, east, web, "Conflict=NoConflicts Ready=Failed Valid=NoService")
	// What is not exported, and was read before what is.
	east.create(t, demo, endpoints("web", "10.64.0.9")+service("other", "10.64.0.5")+serviceExport("other"))
	expect(t, key(demo, "other"), "ClusterSetIP of east Ready [east/10.64.0.5]", east)
	mixed := east.exports(t, demo, "10.64.0.9")

	rest := []string{"services", "namespaces", "nodes", "serviceexports", "serviceimports"}
	away.begin(t, append(rest, "endpointslices")...)
	east.create(t, demo, endpoints("web", "10.64.0.10"))
	east.create(t, demo, serviceOf("{ports: [{name: http, port: 80, targetPort: 8080}]}", "web", "10.64.0.10"))
	away.end(t, rest...)
	select {
	case slice := <-mixed:
		t.Errorf("an endpoint was exported of when there was no Service: %s", slice)
	case <-time.After(2 * time.Second): // it would take milliseconds
	}
	away.end(t, "endpointslices")
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.10]", east)
	select {
	case slice := <-mixed:
		t.Errorf("and then it was: %s", slice)
	default:
	}
}

// exports returns a channel that gets the name of each slice of the controller
// that has an address.
func (c *cluster) exports(t testing.TB, namespace, address string) <-chan string {
	t.Helper()
	watch, err := c.DiscoveryV1().EndpointSlices(namespace).Watch(t.Context(), metav1.ListOptions{LabelSelector: export.LabelSliceManagedBy + "=" + export.Manager})
	must(t, err)
	t.Cleanup(watch.Stop)
	seen := make(chan string, 100)
	go func() {
		for event := range watch.ResultChan() {
			slice, ok := event.Object.(*discoveryv1.EndpointSlice)
			if !ok {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if endpoint.Addresses[0] == address {
					seen <- slice.Name
				}
			}
		}
	}()
	return seen
}
