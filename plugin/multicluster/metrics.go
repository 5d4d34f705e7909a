// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

var (
	objects  = gauge("objects", "Number of Kubernetes objects that are held.", "resource")
	services = gauge("services", "Number of services that are served, by type.", "type")
	skipped  = gauge("skipped", "Number of objects, or parts of them, that are left out, by reason.", "reason")
	lastSync = gauge("last_sync_timestamp_seconds",
		"Unix time at which the API server last confirmed the state of a resource, 0 before the first time.", "resource")
	watching = gauge("watch_healthy",
		"1 if the API server accepted the last list or watch of a resource, else 0.", "resource")

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

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: name, Help: help,
	}, labels)
}

// observer turns what a watch tells into metrics and logs.
type observer struct {
	logged sync.Map // by what is watched: *rate.Sometimes
}

// watchers counts the watches of each resource.
var watchers = struct {
	sync.Mutex
	of map[watch.Resource]int
}{of: make(map[watch.Resource]int)}

func (*observer) Objects(resource watch.Resource, delta int) {
	objects.WithLabelValues(string(resource)).Add(float64(delta))
}

func (*observer) Totals(before, after record.Totals) {
	services.WithLabelValues("ClusterSetIP").Add(float64(after.ClusterSetIP - before.ClusterSetIP))
	services.WithLabelValues("Headless").Add(float64(after.Headless - before.Headless))
	for _, reason := range record.Reasons {
		if delta := after.Skips[reason] - before.Skips[reason]; delta != 0 {
			skipped.WithLabelValues(string(reason)).Add(float64(delta))
		}
	}
}

func (*observer) Watched(resource watch.Resource, delta int) {
	watchers.Lock()
	defer watchers.Unlock()
	watchers.of[resource] += delta
	if watchers.of[resource] == 0 { // its age would grow for ever
		lastSync.DeleteLabelValues(string(resource))
		watching.DeleteLabelValues(string(resource))
	} else if delta > 0 {
		lastSync.WithLabelValues(string(resource)).Set(0)
		watching.WithLabelValues(string(resource)).Set(0)
	}
}

func (*observer) Confirmed(resource watch.Resource, at time.Time) {
	lastSync.WithLabelValues(string(resource)).Set(float64(at.UnixNano()) / float64(time.Second))
}

// Asked logs what keeps a resource from being watched, at most once a minute.
func (o *observer) Asked(resource watch.Resource, namespace string, err error) {
	if err == nil {
		watching.WithLabelValues(string(resource)).Set(1)
		return
	}
	reason := reasonOf(err)
	watching.WithLabelValues(string(resource)).Set(0)
	watchErrors.WithLabelValues(string(resource), reason).Inc()
	watched := string(resource)
	if namespace != "" {
		watched += " in namespace " + namespace
	}
	limit, _ := o.logged.LoadOrStore(watched, &rate.Sometimes{Interval: time.Minute})
	limit.(*rate.Sometimes).Do(func() {
		switch reason {
		case "expired": // an old watch ends like this, and the next list begins a new one
		case "not_found":
			log.Errorf("The API server has no %s: install the CRD; asking again until it is there: %v", watched, err)
		case "forbidden":
			log.Errorf("The API server does not let us list and watch %s: grant the right; asking again until it does: %v",
				watched, err)
		default:
			log.Warningf("Cannot watch %s, answering from what is known: %v", watched, err)
		}
	})
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
	case apierrors.ReasonForError(err) != "":
		return "refused"
	default:
		return "unreachable"
	}
}
