// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what the controller does, and describes its state on each scrape.
package metrics

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/heartbeat"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/mcsapi"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

const prefix = "clusterset_controller_"

// Values of the label origin of the propagation time.
const (
	originLocal  = "local"
	originRemote = "remote"
)

// Metrics are those of one process. The state is that of the leader.
type Metrics struct {
	reconciles  *prometheus.HistogramVec
	propagation *prometheus.HistogramVec
	repeated    *prometheus.CounterVec
	problems    problemCounts
	leader      atomic.Pointer[Leader]
	version     string
}

// A Leader is what the state of a leader is read from.
type Leader struct {
	Clock   clock.PassiveClock
	Queue   interface{ QueueLength() int }
	API     *mcsapi.Follower
	Local   *local.Cluster
	Members *member.Members
	Tracker *memberstate.Tracker
	Record  *heartbeat.Record
}

var (
	buildDesc      = describe("build_info", "Always 1, with the version of the program and of Go.", "version", "goversion")
	leadingDesc    = describe("leader", "1 if this replica is the leader, else 0.")
	servedDesc     = describe("mcs_api_served", "1 for the version of the MCS API in use.", "version")
	queueDesc      = describe("queue_depth", "Services that wait for a reconcile.")
	exportsDesc    = describe("exports", "ServiceExports of the local cluster.")
	importsDesc    = describe("imports", "ServiceImports that this controller created, by type.", "type")
	conditionsDesc = describe("conditions", "Conditions of ServiceExports and ServiceImports, by type, status and reason. A condition with several reasons counts for each.", "kind", "type", "status", "reason")
	unreadableDesc = describe("unreadable_objects",
		"ServiceExports and ServiceImports that cannot be decoded, so that the controller does not change them, by kind.",
		"kind")
	refusedDesc   = describe("member_credentials_invalid", "Secrets of members that are invalid and not used.")
	connectedDesc = describe("member_connected", "1 if reading a member works and its heartbeat arrives, else 0.",
		"member")
	mistakenDesc = describe("member_identity_mismatch",
		"1 if the credential of a member connects to another cluster, else 0.", "member")
	syncedDesc = describe("member_synced",
		"1 once all slices of a member were listed with its current credential, else 0.", "member")
	heartbeatDesc = describe("member_heartbeat_age_seconds",
		"Seconds since the last heartbeat of a member; absent before the first.", "member")
	issuedDesc = describe("member_credential_issued_timestamp_seconds",
		"Unix time from which the token or client certificate for a member is valid; absent if unknown.", "member")
	expiresDesc = describe("member_credential_expiration_timestamp_seconds",
		"Unix time at which the token or client certificate for a member expires; absent if unknown or never.", "member")
	stateDesc   = describe("member_state", "1 for the state of a member, with its reason.", "member", "state", "reason")
	demotedDesc = describe("member_demoted",
		"1 if the endpoints of a member are used only if no other cluster has a ready one, else 0.", "member")
	pathDesc = describe("member_path",
		"1 for the path to the pods of a member: unknown, reachable or unreachable.", "member", "path")
	canaryDesc = describe("member_canary", "1 if a canary of a member is reached, else 0.", "member", "zone", "canary")
	silentDesc = describe("all_members_silent",
		"1 if no member is reachable, so that the fault is probably local, else 0.")
	stoppedDesc = describe("heartbeat_stopped",
		"1 if this cluster stopped its heartbeat because its EndpointSlices are not up to date, by reason (inputs, workers, writes), else 0.", "reason")
	publishedDesc = describe("member_endpointslices", "EndpointSlices that a member publishes, as last seen.", "member")
	zonelessDesc  = describe("nodes_without_zone",
		"Nodes of the local cluster without the label topology.kubernetes.io/zone, which ignore hints for zones.")
	overLimitDesc = describe("member_over_limit",
		"1 if a member exceeds a limit, so that the excess is left out, else 0.", "member", "limit")
	problemsDesc = describe("export_problems",
		"Services that are partially imported, by exporting cluster and reason.", "member", "reason")
)

// described are all descriptions.
var described []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	described = append(described, prometheus.NewDesc(prefix+name, help, labels, nil))
	return described[len(described)-1]
}

// New returns metrics, which it registers.
func New(registry *prometheus.Registry, version string) (*Metrics, error) {
	m := &Metrics{
		version: version,
		reconciles: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    prefix + "reconcile_duration_seconds",
			Help:    "Duration of a reconcile, by result (ok, error).",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"result"}),
		propagation: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    prefix + "propagation_duration_seconds",
			Help:    "Time from the change of an endpoint in its cluster, by that cluster's clock, to the slice written here, by origin (local, remote).",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}, []string{"origin"}),
		repeated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "overwritten_objects_total",
			Help: "Writes repeated because another writer reverted them, by kind of the object.",
		}, []string{"kind"}),
	}
	for _, collector := range []prometheus.Collector{m.reconciles, m.propagation, m.repeated, m} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return m, nil
}

// Reconciled observes one reconcile.
func (m *Metrics) Reconciled(took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.reconciles.WithLabelValues(result).Observe(took.Seconds())
}

// Problems replaces the problems of the exports of a service, by cluster.
func (m *Metrics) Problems(service types.NamespacedName, problems map[string][]export.Problem) {
	m.problems.set(service, problems)
}

// Problematic returns the services with problems, sorted.
func (m *Metrics) Problematic() []types.NamespacedName {
	m.problems.mu.Lock()
	defer m.problems.mu.Unlock()
	return slices.SortedFunc(maps.Keys(m.problems.services), func(a, b types.NamespacedName) int {
		return strings.Compare(a.String(), b.String())
	})
}

// A Writer observes the writes of the leader of a cluster.
type Writer struct {
	*Metrics
	Cluster string
	Clock   clock.PassiveClock
}

// Written implements apply.Metrics.
func (w Writer) Written(before, after *discoveryv1.EndpointSlice) {
	trigger := after.Annotations[export.AnnotationTriggerTime]
	if trigger == "" || before != nil && before.Annotations[export.AnnotationTriggerTime] == trigger {
		return
	}
	origin := originRemote
	if after.Labels[export.LabelSourceCluster] == w.Cluster {
		origin = originLocal
	}
	if at, err := time.Parse(time.RFC3339Nano, trigger); err == nil {
		w.propagated(origin, w.Clock.Since(at))
	}
}

// Repeated implements apply.Metrics.
func (w Writer) Repeated(kind string) { w.repeated.WithLabelValues(kind).Inc() }

// propagated observes how long a change took to arrive. Clocks may differ.
func (m *Metrics) propagated(origin string, took time.Duration) {
	m.propagation.WithLabelValues(origin).Observe(max(0, took.Seconds()))
}

// Lead adds the state of a leader, until the returned function is called.
func (m *Metrics) Lead(leader *Leader) func() {
	m.problems.clear() // of a former term
	m.leader.Store(leader)
	return func() { m.leader.Store(nil) }
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, each := range described {
		descriptions <- each
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(samples chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		samples <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(buildDesc, 1, m.version, runtime.Version())
	r := m.leader.Load()
	gauge(leadingDesc, number(r != nil))
	if r == nil {
		return
	}
	gauge(queueDesc, float64(r.Queue.QueueLength()))
	m.collectObjects(r, gauge)
	gauge(refusedDesc, float64(len(r.Members.Refused())))
	gauge(zonelessDesc, float64(len(r.Local.NodesWithoutZone())))
	judgement := r.Tracker.Judgement()
	gauge(silentDesc, number(judgement.Isolated))
	for _, reason := range heartbeat.Reasons {
		gauge(stoppedDesc, number(r.Record.Reason() == reason), string(reason))
	}
	for _, verdict := range judgement.Members {
		gauge(stateDesc, 1, verdict.Cluster, verdict.State.String(), string(verdict.Reason))
		gauge(demotedDesc, number(verdict.Demote), verdict.Cluster)
	}
	for _, each := range r.Tracker.Canaries() {
		gauge(canaryDesc, number(!each.Cut), each.Cluster, each.Zone, each.Address.String())
	}
	for _, member := range r.Members.List() {
		cluster := member.Cluster()
		gauge(pathDesc, 1, cluster, r.Tracker.Path(cluster).String())
		gauge(connectedDesc, number(member.Problem() == nil && member.Synced()), cluster)
		gauge(mistakenDesc, number(member.Misidentified() != nil), cluster)
		gauge(syncedDesc, number(member.Synced()), cluster)
		gauge(publishedDesc, float64(member.Published()), cluster)
		excess := member.Account().Excess()
		for _, limit := range limits.All {
			_, exceeded := excess[limit]
			gauge(overLimitDesc, number(exceeded), cluster, string(limit))
		}
		life := member.Life()
		if !life.Issued.IsZero() {
			gauge(issuedDesc, float64(life.Issued.Unix()), cluster)
		}
		if !life.Expires.IsZero() {
			gauge(expiresDesc, float64(life.Expires.Unix()), cluster)
		}
		if heard := member.Heartbeat().Heard; !heard.IsZero() {
			gauge(heartbeatDesc, r.Clock.Since(heard).Seconds(), cluster)
		}
	}
	for key, count := range m.problems.count() {
		gauge(problemsDesc, float64(count), key.cluster, string(key.reason))
	}
}

func (m *Metrics) collectObjects(r *Leader, gauge func(*prometheus.Desc, float64, ...string)) {
	access, _ := r.API.Access()
	if access == nil {
		return
	}
	gauge(servedDesc, 1, strings.TrimPrefix(access.APIVersion(), v1beta1.GroupName+"/"))
	exports, conditions := 0, map[[4]string]int{}
	unreadable := map[string]int{v1beta1.ServiceExportKindName: 0, v1beta1.ServiceImportKindName: 0}
	imports := map[v1beta1.ServiceImportType]int{v1beta1.ClusterSetIP: 0, v1beta1.Headless: 0}
	for fact, number := range access.Counts() {
		switch {
		case fact.Unreadable:
			unreadable[fact.Kind] = number
		case fact.Managed:
			imports[fact.Type] = number
		case fact.Condition != "":
			conditions[[4]string{fact.Kind, fact.Condition, fact.Status, fact.Reason}] = number
		case fact.Kind == v1beta1.ServiceExportKindName:
			exports = number
		}
	}
	gauge(exportsDesc, float64(exports))
	for kind, number := range unreadable {
		gauge(unreadableDesc, float64(number), kind)
	}
	for kind, number := range imports {
		gauge(importsDesc, float64(number), string(kind))
	}
	for labels, number := range conditions {
		gauge(conditionsDesc, float64(number), labels[:]...)
	}
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

type problemKey struct {
	cluster string
	reason  export.Reason
}

// problemCounts counts the problems of services by reason.
type problemCounts struct {
	mu       sync.Mutex
	services map[types.NamespacedName]map[problemKey]bool
	counts   map[problemKey]int // services by their problems
}

// set replaces the problems of a service.
func (c *problemCounts) set(service types.NamespacedName, problems map[string][]export.Problem) {
	keys := map[problemKey]bool{}
	for cluster, each := range problems {
		for _, problem := range each {
			keys[problemKey{cluster, problem.Reason}] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.services[service] {
		if c.counts[key]--; c.counts[key] == 0 {
			delete(c.counts, key)
		}
	}
	if len(keys) == 0 {
		delete(c.services, service)
		return
	}
	if c.services == nil {
		c.services, c.counts = map[types.NamespacedName]map[problemKey]bool{}, map[problemKey]int{}
	}
	for key := range keys {
		c.counts[key]++
	}
	c.services[service] = keys
}

// clear forgets all services: the next leader of this process looks anew.
func (c *problemCounts) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.services, c.counts = nil, nil
}

// count returns the number of services by their problems, in a new map.
func (c *problemCounts) count() map[problemKey]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}
