// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

func TestAResourceIsAsOldAsTheOldestWatchOfIt(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	collected := make(chan prometheus.Metric, 100)
	collectStates([]watch.State{
		{Resource: watch.ServiceImports, Synced: at(200), Healthy: true},
		{Resource: watch.EndpointSlices, Synced: at(300), Healthy: true},
		{Resource: watch.ServiceImports, Synced: at(100), Healthy: true},
		{Resource: watch.EndpointSlices, Synced: at(400)},
		{Resource: watch.Namespaces},
	}, collected)
	close(collected)
	var got []string
	for metric := range collected {
		var value dto.Metric
		if err := metric.Write(&value); err != nil {
			t.Fatal(err)
		}
		what := "synced"
		if metric.Desc() == watching {
			what = "healthy"
		}
		got = append(got, fmt.Sprint(value.GetLabel()[0].GetValue(), " ", what, " ", value.GetGauge().GetValue()))
	}
	slices.Sort(got)
	want := []string{
		"endpointslices healthy 0", "endpointslices synced 300",
		"namespaces healthy 0", "namespaces synced 0",
		"serviceimports healthy 1", "serviceimports synced 100",
	}
	if !slices.Equal(got, want) {
		t.Errorf("collected are\n%q\nwant\n%q", got, want)
	}
}
