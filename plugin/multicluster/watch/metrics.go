// SPDX-License-Identifier: Apache-2.0

package watch

import (
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
	services = gauge("services", "Number of services that are served, by type.", "type")
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

	programmingDuration = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Namespace:                   plugin.Namespace,
		Subsystem:                   pluginName,
		Name:                        "dns_programming_duration_seconds",
		Buckets:                     prometheus.ExponentialBuckets(0.001, 2, 20), // from 1 millisecond to 9 minutes
		NativeHistogramBucketFactor: plugin.NativeHistogramBucketFactor,
		Help:                        "Time from a change of endpoints to the answer that has it, by service kind.",
	}, []string{"service_kind"})
	// programming has the histograms by Headless. The kinds are named as in the kubernetes plugin. Slices with a known
	// cause belong to a Service with a selector.
	programming = map[bool]prometheus.Observer{
		true:  programmingDuration.WithLabelValues("headless_with_selector"),
		false: programmingDuration.WithLabelValues("cluster_ip"),
	}
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
	values := map[*prometheus.Desc]map[string]float64{objects: {}, services: {}, skipped: {}, lastSync: {}, healthy: {}}
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
			totals := s.index.Totals()
			values[services]["ClusterSetIP"] += float64(totals.ClusterSetIP)
			values[services]["Headless"] += float64(totals.Headless)
			for reason, n := range totals.Skips {
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
	reason := reasonOf(err)
	watchErrors.WithLabelValues(string(s.resource), reason).Inc()
	if reason == "expired" { // a watch ends with this error when its version is too old; the reflector then lists again
		return
	}
	watched := string(s.resource)
	if s.namespace != "" {
		watched += " in namespace " + s.namespace
	}
	s.failed.Do(func() {
		switch reason {
		case "not_found":
			log.Errorf("The API server has no %s: install the CRD; asking again until it is there: %v", watched, err)
		case "forbidden":
			log.Errorf("The API server does not let us list and watch %s: check the credentials and grant the right; "+
				"asking again until it does: %v", watched, err)
		default:
			log.Warningf("Cannot list or watch %s: answers do not follow their changes until a retry succeeds: %v", watched, err)
		}
	})
}

// reasonOf returns why a list or a watch failed, as the value of a metric label.
func reasonOf(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return "not_found"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return "forbidden"
	case apierrors.IsTooManyRequests(err):
		return "throttled"
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return "expired"
	case apierrors.ReasonForError(err) != "":
		return "refused"
	default:
		return "unreachable"
	}
}
