// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"

	"github.com/coredns/coredns/plugin"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const pluginName = "multicluster"

var log = clog.NewWithPlugin(pluginName)

var (
	objects  = gauge("objects", "Number of Kubernetes objects in the cache.", "resource")
	skipped  = gauge("skipped", "Number of objects, or parts of them, that are left out, by reason.", "reason")
	lastSync = gauge("last_sync_timestamp_seconds",
		"Unix time at which the API server last confirmed the state of a resource, 0 before the first time.", "resource")
	healthy = gauge("watch_healthy", "1 if the API server accepted the last list or watch of a resource, else 0.", "resource")

	watchErrors = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "watch_errors_total",
		Help:      "Number of lists and watches that failed, by reason.",
	}, []string{"resource", "reason"})

	programming prometheus.Observer = promauto.NewHistogram(prometheus.HistogramOpts{
		Namespace:                   plugin.Namespace,
		Subsystem:                   pluginName,
		Name:                        "dns_programming_duration_seconds",
		Buckets:                     prometheus.ExponentialBuckets(0.001, 2, 20), // from 1 millisecond to 9 minutes
		NativeHistogramBucketFactor: plugin.NativeHistogramBucketFactor,
		Help:                        "Time from a change of endpoints to answers that follow it.",
	})
)

func gauge(name, help, label string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(plugin.Namespace, pluginName, name), help, []string{label}, nil)
}

// gauges are computed from all sources that Open returned. If several watches have the same resource, the worst value counts.
type gauges struct{}

func init() { prometheus.MustRegister(gauges{}) }

// Describe sends no descriptions, because without sources there are no gauges.
func (gauges) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (gauges) Collect(metrics chan<- prometheus.Metric) {
	values := map[*prometheus.Desc]map[string]float64{objects: {}, skipped: {}, lastSync: {}, healthy: {}}
	worst := func(of *prometheus.Desc, resource Resource, value float64) {
		if before, known := values[of][string(resource)]; !known || value < before {
			values[of][string(resource)] = value
		}
	}
	sources.Lock()
	defer sources.Unlock()
	for _, s := range sources.byKey {
		s.mu.Lock()
		for resource, held := range s.objects {
			values[objects][string(resource)] += float64(len(held))
		}
		for _, each := range s.stores {
			accepted := 0.0
			if each.healthy {
				accepted = 1
			}
			worst(lastSync, each.resource, max(0, float64(each.confirmed.UnixMilli())/1000)) // the zero time is before 1970
			worst(healthy, each.resource, accepted)
		}
		s.mu.Unlock()
		if s.index.State() != nil {
			for reason, n := range s.index.Skips() {
				values[skipped][string(reason)] += float64(n)
			}
		}
	}
	for of, each := range values {
		for label, value := range each {
			metrics <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, label)
		}
	}
}

// report counts a failed list or watch, and logs it at most once a minute.
func (s *store) report(err error) {
	watchErrors.WithLabelValues(string(s.resource), cmp.Or(string(apierrors.ReasonForError(err)), "Unreachable")).Inc()
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) { // the version of a watch is too old; the reflector lists again
		return
	}
	watched := string(s.resource)
	if s.namespace != "" {
		watched += " in namespace " + s.namespace
	}
	s.failed.Do(func() {
		log.Errorf("Cannot list or watch %s: answers do not follow their changes until a retry succeeds: %v", watched, err)
	})
}
