// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// samples are the values of metrics in the text format of Prometheus, by name and labels as they were written.
type samples map[string]float64

func parseSamples(text string) samples {
	all := samples{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		if value, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			all[line[:at]] = value
		}
	}
	return all
}

// sum adds the values of a metric whose labels contain each of the texts, such as verb="WATCH".
func (s samples) sum(name string, labels ...string) (sum float64) {
	for series, value := range s {
		rest, ok := strings.CutPrefix(series, name)
		if !ok || rest != "" && rest[0] != '{' {
			continue
		}
		matches := true
		for _, label := range labels {
			matches = matches && strings.Contains(rest, label)
		}
		if matches {
			sum += value
		}
	}
	return sum
}

// controllerMetrics are those of the controller now.
func (b *bed) controllerMetrics(ctx context.Context) (samples, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.controller.address+"/metrics",
		http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics of the controller: %s, %w", response.Status, err)
	}
	return parseSamples(string(text)), nil
}

// serverMetrics are those of the own API server now.
func (b *bed) serverMetrics(ctx context.Context) (samples, error) {
	text, err := b.plane.Client().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	return parseSamples(string(text)), nil
}

// synced is the number of members whose slices were listed.
func (s samples) synced() int { return int(s.sum("clusterset_controller_member_synced")) }

// idle reports whether no service waits for a reconcile.
func (s samples) idle() bool { return s.sum("clusterset_controller_queue_depth") == 0 }

// limited is the number of limits of members that are exceeded.
func (s samples) limited() int { return int(s.sum("clusterset_controller_member_over_limit")) }

// writes is the number of requests that write, to an API server since its start.
func (s samples) writes() (sum float64) {
	for _, verb := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"} {
		sum += s.sum("apiserver_request_total", `verb="`+verb+`"`)
	}
	return sum
}

// leaseWrites is the part of writes that concerns Leases.
func (s samples) leaseWrites() (sum float64) {
	for _, verb := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE"} {
		sum += s.sum("apiserver_request_total", `verb="`+verb+`"`, `resource="leases"`)
	}
	return sum
}

// watches is the number of open watches at an API server.
func (s samples) watches() float64 { return s.sum("apiserver_longrunning_requests", `verb="WATCH"`) }

// stored is the size of etcd's database in bytes.
func (s samples) stored() float64 { return s.sum("apiserver_storage_size_bytes") }
