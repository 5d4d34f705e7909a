// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/test/bench/usage"
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
	text, err := usage.Get(ctx, "http://"+b.local().controller.Address+"/metrics")
	return parseSamples(text), err
}

// serverMetrics are those of the own API server now.
func (b *bed) serverMetrics(ctx context.Context) (samples, error) {
	text, err := b.local().Client().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
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

// writes is the number of requests that write, to an API server since its start, of those whose labels contain the texts.
func (s samples) writes(labels ...string) (sum float64) {
	for _, verb := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"} {
		sum += s.sum("apiserver_request_total", append(labels, `verb="`+verb+`"`)...)
	}
	return sum
}
