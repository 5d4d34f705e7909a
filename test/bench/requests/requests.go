// SPDX-License-Identifier: Apache-2.0

// Package requests counts the requests of a client of an API server, by verb and resource.
package requests

import (
	"context"
	"encoding/json"
	"expvar"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
)

// Kind is a verb of HTTP with a resource and its subresource, such as "PUT serviceimports/status".
type Kind string

// KindOf is the kind of a request to an API server. Discovery and health have no resource.
func KindOf(method, path string) Kind {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skipped := map[string]int{"api": 2, "apis": 3}[parts[0]] // api/v1, apis/<group>/<version>
	parts = parts[min(skipped, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	if skipped == 0 || len(parts) == 0 {
		return Kind(method)
	}
	resource := parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return Kind(method + " " + resource)
}

// Lease reports whether a request renews a Lease or reads it.
func (k Kind) Lease() bool { return strings.HasSuffix(string(k), " leases") }

// Write reports whether the request writes.
func (k Kind) Write() bool { return !strings.HasPrefix(string(k), http.MethodGet) }

// Counts has how many requests there were of each kind.
type Counts map[Kind]int

// Add adds the other requests to these.
func (c Counts) Add(other Counts) {
	for kind, count := range other {
		c[kind] += count
	}
}

// Since are the requests after an earlier count.
func (c Counts) Since(before Counts) Counts {
	since := Counts{}
	for kind, count := range c {
		if count > before[kind] {
			since[kind] = count - before[kind]
		}
	}
	return since
}

// PerEach shows how many writes there were for each of so many changes, in all and by kind, without Leases.
func (c Counts) PerEach(changes int) (writes float64, byKind string) {
	var kinds []string
	for kind, count := range c {
		if each := float64(count) / float64(changes); kind.Write() && !kind.Lease() {
			writes += each
			kinds = append(kinds, fmt.Sprintf("%s %.2f", kind, each))
		}
	}
	slices.Sort(kinds)
	return writes, strings.Join(kinds, ", ")
}

const variable = "requests"

// Publish counts the requests of the clients that are made of the configuration, for Read. It is called once in a process.
func Publish(config *rest.Config) {
	counts := expvar.NewMap(variable)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			counts.Add(string(KindOf(request.Method, request.URL.Path)), 1)
			return next.RoundTrip(request)
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// Read reads the counts of a process that called Publish and serves net/http's default mux at the address.
func Read(ctx context.Context, address string) (Counts, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/vars", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the counts of requests: %w", err)
	}
	defer response.Body.Close()
	var variables map[string]json.RawMessage
	if err := json.NewDecoder(response.Body).Decode(&variables); err != nil {
		return nil, fmt.Errorf("read the counts of requests: %w", err)
	}
	var counts Counts
	return counts, json.Unmarshal(variables[variable], &counts)
}
