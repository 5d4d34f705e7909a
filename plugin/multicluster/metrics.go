// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"errors"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

var (
	objects = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "objects",
		Help:      "Number of Kubernetes objects that are held.",
	}, []string{"resource"})

	services = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "services",
		Help:      "Number of services that are served, by type.",
	}, []string{"type"})

	addresses = promauto.NewGauge(prometheus.GaugeOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "addresses",
		Help:      "Number of addresses that are served.",
	})

	skipped = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace,
		Subsystem: pluginName,
		Name:      "skipped",
		Help:      "Number of objects, or parts of them, that are left out, by reason.",
	}, []string{"reason"})

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
)

// watches collects the states of the watched resources. If several watches have the same resource, the worst state
// counts. A watch that ends no longer counts.
type watches struct{}

var (
	lastSync = prometheus.NewDesc(prometheus.BuildFQName(plugin.Namespace, pluginName, "last_sync_timestamp_seconds"),
		"Unix time at which the API server last confirmed the state of a resource, 0 before the first time.",
		[]string{"resource"}, nil)

	watching = prometheus.NewDesc(prometheus.BuildFQName(plugin.Namespace, pluginName, "watch_healthy"),
		"1 if the API server accepted the last list or watch of a resource, else 0.", []string{"resource"}, nil)
)

func init() { prometheus.MustRegister(watches{}) }

// Describe implements prometheus.Collector.
func (watches) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- lastSync
	descriptions <- watching
}

// Collect implements prometheus.Collector.
func (watches) Collect(collected chan<- prometheus.Metric) { collectStates(watch.States(), collected) }

func collectStates(states []watch.State, collected chan<- prometheus.Metric) {
	type worst struct{ synced, healthy float64 }
	all := make(map[watch.Resource]worst)
	for _, state := range states {
		now := worst{}
		if !state.Synced.IsZero() {
			now.synced = float64(state.Synced.UnixNano()) / float64(time.Second)
		}
		if state.Healthy {
			now.healthy = 1
		}
		if other, ok := all[state.Resource]; ok {
			now.synced, now.healthy = min(now.synced, other.synced), min(now.healthy, other.healthy)
		}
		all[state.Resource] = now
	}
	for resource, w := range all {
		collected <- prometheus.MustNewConstMetric(lastSync, prometheus.GaugeValue, w.synced, string(resource))
		collected <- prometheus.MustNewConstMetric(watching, prometheus.GaugeValue, w.healthy, string(resource))
	}
}

// observer turns what a watch tells into metrics and logs.
type observer struct {
	problems problems
}

func (*observer) Objects(resource watch.Resource, delta int) {
	objects.WithLabelValues(string(resource)).Add(float64(delta))
}

func (*observer) Totals(before, after index.Totals) {
	services.WithLabelValues("ClusterSetIP").Add(float64(after.ClusterSetIP - before.ClusterSetIP))
	services.WithLabelValues("Headless").Add(float64(after.Headless - before.Headless))
	addresses.Add(float64(after.Addresses - before.Addresses))
	for _, reason := range object.Reasons() {
		if delta := after.Skips[reason] - before.Skips[reason]; delta != 0 {
			skipped.WithLabelValues(string(reason)).Add(float64(delta))
		}
	}
}

func (o *observer) Asked(resource watch.Resource, namespace string, err error) {
	if err != nil {
		watchErrors.WithLabelValues(string(resource), reasonOf(err)).Inc()
	}
	o.problems.note(resource, namespace, err)
}

func (*observer) Undecodable(resource watch.Resource, name string, err error) {
	log.Warningf("Leaving out %s %s, which cannot be decoded: correct or delete the object: %v", resource, name, err)
}

// Programmed observes the latency as the kubernetes plugin does. Slices whose cause is known come of a Service with a
// selector.
func (*observer) Programmed(headless bool, latency time.Duration) {
	kind := "cluster_ip"
	if headless {
		kind = "headless_with_selector"
	}
	programmingDuration.WithLabelValues(kind).Observe(latency.Seconds())
}

// reasonOf is why a list or a watch failed, as one of a few words.
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
	case errors.Is(err, watch.ErrUndecodable):
		return string(object.Undecodable)
	case apierrors.ReasonForError(err) != "":
		return "refused"
	default:
		return "unreachable"
	}
}
