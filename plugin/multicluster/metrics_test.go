// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

func value(t *testing.T, of prometheus.Metric) float64 {
	t.Helper()
	var metric dto.Metric
	if err := of.Write(&metric); err != nil {
		t.Fatal(err)
	}
	return metric.GetGauge().GetValue()
}

func count(of prometheus.Collector) int {
	collected := make(chan prometheus.Metric, 100)
	of.Collect(collected)
	return len(collected)
}

// A reload starts a watch before the last one ends. What is no longer watched has no age that grows.
func TestOnlyWhatIsWatchedHasMetrics(t *testing.T) {
	const resource = watch.Resource("things")
	before := count(lastSync)
	o := new(observer)
	expect := func(step string, synced, healthy float64) {
		t.Helper()
		if got := value(t, lastSync.WithLabelValues(string(resource))); got != synced {
			t.Errorf("%s: the last sync is %v, want %v", step, got, synced)
		}
		if got := value(t, watching.WithLabelValues(string(resource))); got != healthy {
			t.Errorf("%s: healthy is %v, want %v", step, got, healthy)
		}
	}
	o.Watched(resource, +1)
	expect("before the first list", 0, 0)
	o.Asked(resource, "", nil)
	o.Confirmed(resource, time.Unix(100, 0))
	expect("listed", 100, 1)
	o.Asked(resource, "", errors.New("away"))
	expect("the API server is away", 100, 0)
	o.Watched(resource, +1)
	o.Asked(resource, "", nil)
	o.Confirmed(resource, time.Unix(200, 0))
	o.Watched(resource, -1)
	expect("one of two watches ends", 200, 1)
	o.Watched(resource, -1)
	if got := count(lastSync) + count(watching); got != 2*before {
		t.Errorf("after the last watch there are %d metrics, want %d", got, 2*before)
	}
}
