// SPDX-License-Identifier: Apache-2.0

package statusz

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/heartbeat"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/reconciler"
)

const prefix = "clusterset_controller_"

// gauges lists all metrics except the histogram, with their labels. A gauge with the help "1 if ..." is 0 otherwise.
var gauges = []struct{ name, help, labels string }{
	{"build_info", "1, with the versions of the program and of Go.", "version goversion"},
	{"leader", "1 if this replica is the leader.", ""},
	{"mcs_api_served", "1 for the version of the MCS API in use.", "version"},
	{"queue_depth", "Services that are queued or being reconciled.", ""},
	{"conditions", "Conditions of ServiceExports and ServiceImports. A condition counts once for each of its reasons.", "kind type status reason"},
	{"member_credentials_invalid", "Credentials of members that are invalid and not used.", ""},
	{"member_connected", "1 if reading a member works.", "member"},
	{"member_synced", "1 once all slices of a member were listed with its credential.", "member"},
	{"member_heartbeat_age_seconds", "Seconds since the last heartbeat of a member; absent until this leader received one.", "member"},
	{"member_credential_issued_timestamp_seconds", "Unix time from which the credential of a member is valid; absent if unknown.", "member"},
	{"member_credential_expiration_timestamp_seconds", "Unix time at which the credential of a member expires; absent if unknown or never.", "member"},
	{"member_state", "1 for the state of a member.", "member state reason"},
	{"member_path", "1 for the path to the pods of a member.", "member path"},
	{"member_probe_target", "1 if this probe target of a member is reached.", "member target"},
	{"heartbeat_stopped", "1 if this cluster stopped its heartbeat, by reason (inputs, writes).", "reason"},
	{"nodes_without_zone", "Nodes without the label topology.kubernetes.io/zone, which ignore hints for zones.", ""},
	{"member_over_limit", "1 if a member exceeds a limit.", "member limit"},
	{"export_problems", "Services that are partially imported.", "member reason"},
}

// number has the value of a gauge that is 1 if something is true.
var number = map[bool]float64{true: 1}

// described has the descriptions of gauges, by name.
var described = func() map[string]*prometheus.Desc {
	all := map[string]*prometheus.Desc{}
	for _, each := range gauges {
		all[each.name] = prometheus.NewDesc(prefix+each.name, each.help, strings.Fields(each.labels), nil)
	}
	return all
}()

// NewServer returns a Server that has no leader until Lead, and registers it with the registry.
func NewServer(registry *prometheus.Registry, version string) (*Server, error) {
	s := &Server{
		version: version,
		reconciles: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    prefix + "reconcile_duration_seconds",
			Help:    "Duration of a reconcile, by result (ok, error).",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"result"}),
	}
	for _, collector := range []prometheus.Collector{s.reconciles, s} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return s, nil
}

// Reconciled observes one reconcile.
func (s *Server) Reconciled(took time.Duration, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	s.reconciles.WithLabelValues(result).Observe(took.Seconds())
}

// Lead makes the server answer with the state of a leader.
func (s *Server) Lead(leader *Leader) { s.leader.Store(leader) }

// Describe implements prometheus.Collector.
func (s *Server) Describe(descriptions chan<- *prometheus.Desc) {
	for _, each := range described {
		descriptions <- each
	}
}

// Collect implements prometheus.Collector.
func (s *Server) Collect(samples chan<- prometheus.Metric) {
	gauge := func(name string, value float64, labels ...string) {
		samples <- prometheus.MustNewConstMetric(described[name], prometheus.GaugeValue, value, labels...)
	}
	gauge("build_info", 1, s.version, runtime.Version())
	r := s.leader.Load()
	gauge("leader", number[r != nil])
	if r == nil {
		return
	}
	gauge("queue_depth", float64(r.QueueLength()))
	if version := r.API.Version(); version != "" {
		gauge("mcs_api_served", 1, version)
		countConditions(r.API.Exports.List(), r.API.Imports.List(), gauge)
	}
	gauge("member_credentials_invalid", float64(len(r.Members.Refused())))
	gauge("nodes_without_zone", float64(len(r.Local.NodesWithoutZone())))
	stopped, _ := r.Heartbeat.Doubted()
	for _, reason := range heartbeat.Reasons {
		gauge("heartbeat_stopped", number[stopped == reason], string(reason))
	}
	for _, member := range r.Members.List() {
		cluster, known := member.Cluster(), r.Tracker.Of(member.Cluster())
		gauge("member_state", 1, cluster, known.Verdict.State.String(), string(known.Verdict.Reason))
		gauge("member_path", 1, cluster, known.Path.String())
		for _, each := range known.ProbedTargets {
			gauge("member_probe_target", number[!each.Fails], cluster, each.Address.String())
		}
		gauge("member_connected", number[member.Problem() == nil && member.Synced()], cluster)
		gauge("member_synced", number[member.Synced()], cluster)
		excess := member.Excess()
		for _, limit := range limits.All {
			_, exceeded := excess[limit]
			gauge("member_over_limit", number[exceeded], cluster, string(limit))
		}
		life := member.Life()
		if !life.Issued.IsZero() {
			gauge("member_credential_issued_timestamp_seconds", float64(life.Issued.Unix()), cluster)
		}
		if !life.Expires.IsZero() {
			gauge("member_credential_expiration_timestamp_seconds", float64(life.Expires.Unix()), cluster)
		}
		if heard := known.Arrivals.Last; !heard.IsZero() {
			gauge("member_heartbeat_age_seconds", r.Clock.Since(heard).Seconds(), cluster)
		}
	}
	counts := map[reconciler.Partial]int{}
	for _, reasons := range r.Partial() {
		for each := range reasons {
			counts[each]++
		}
	}
	for each, count := range counts {
		gauge("export_problems", float64(count), each.Cluster, string(each.Reason))
	}
}

// countConditions counts the conditions of exports and imports. It ignores imports of other owners.
func countConditions(exports []*v1beta1.ServiceExport, all []*v1beta1.ServiceImport,
	gauge func(string, float64, ...string),
) {
	conditions := map[[4]string]int{} // by kind, type, status and reason
	count := func(kind string, has []metav1.Condition) {
		for _, condition := range has {
			for reason := range strings.SplitSeq(condition.Reason, ",") {
				conditions[[4]string{kind, condition.Type, string(condition.Status), reason}]++
			}
		}
	}
	for _, each := range exports {
		count(v1beta1.ServiceExportKindName, each.Status.Conditions)
	}
	for _, each := range all {
		if export.IsManaged(each) {
			count(v1beta1.ServiceImportKindName, each.Status.Conditions)
		}
	}
	for labels, number := range conditions {
		gauge("conditions", float64(number), labels[:]...)
	}
}
