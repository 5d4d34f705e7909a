// SPDX-License-Identifier: Apache-2.0

// Package statusz serves the state of the leading controller: its cluster, the explanation of a service, and metrics. It
// computes each answer from the same inputs as a pass, and changes nothing.
package statusz

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/heartbeat"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/reconciler"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// A Leader has the input of the answers.
type Leader struct {
	*reconciler.Reconciler
	Heartbeat *heartbeat.Renewer
}

// A Server answers state.PathStatus and state.PathExplain once Lead was called, and 503 before. It computes one answer at
// a time: the http.Server's WriteTimeout bounds an answer together with those before it. Only connections from the pod
// itself get an answer: the kubelet forwards them for users with the right pods/portforward (docs/security.md). It is
// also the prometheus.Collector of the process. It is safe for concurrent use.
type Server struct {
	reconciles *prometheus.HistogramVec
	version    string
	leader     atomic.Pointer[Leader]
	answering  sync.Mutex
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The kernel accepts no connection from another host with a loopback address. The proxy of a service mesh in the pod
	// uses other loopback addresses.
	if host, _, _ := net.SplitHostPort(r.RemoteAddr); host != "127.0.0.1" && host != "::1" {
		http.Error(w, "This path answers only connections that are forwarded to the pod: use kubectl clusterset status or "+
			"explain, or kubectl port-forward.", http.StatusForbidden)
		return
	}
	leader := s.leader.Load()
	if leader == nil {
		http.Error(w, "This replica does not lead.", http.StatusServiceUnavailable)
		return
	}
	document, err := s.answer(leader, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	write(w, document)
}

// answer computes an answer. Concurrent requests wait for each other's computation, but not for slow clients.
func (s *Server) answer(leader *Leader, r *http.Request) (any, error) {
	s.answering.Lock()
	defer s.answering.Unlock()
	if r.URL.Path == state.PathStatus {
		return leader.status(s.version), nil
	}
	namespace, name, err := cache.SplitMetaNamespaceKey(r.URL.Query().Get("service"))
	if err != nil || namespace == "" || name == "" {
		return nil, errors.New("the query parameter service must be namespace/name")
	}
	if missing := leader.API.Missing(); missing != "" {
		return nil, fmt.Errorf("the MCS API is not served: %s", missing)
	}
	return leader.explain(types.NamespacedName{Namespace: namespace, Name: name}), nil
}

// write writes the document that a pointer points to. Its texts may come from members.
func write(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	state.Clean(document)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(document) // fails only if the client has disconnected
}

// status returns the state of the cluster. version is the version of the controller.
func (l *Leader) status(version string) *state.Cluster {
	own := reconciler.Standing(l.Local.Namespace(l.Namespace))
	stopped, _ := l.Heartbeat.Doubted()
	out := &state.Cluster{
		Version: state.Version, Cluster: l.Cluster, UID: l.Local.KubeSystemUID(), Network: l.Properties.Network(),
		Controller: version, Now: l.Clock.Now().UTC(), HeartbeatStopped: string(stopped),
		Drained: own.Demote, Rank: own.Rank, Queue: l.QueueLength(), MCSVersion: l.API.Version(),
		Imports: []state.Import{},
	}
	all, members := l.Members.List(), map[string]*state.Member{}
	out.Members = make([]state.Member, len(all))
	for i, m := range all {
		out.Members[i] = l.member(m)
		members[m.Cluster()] = &out.Members[i]
	}
	for _, from := range l.API.Imports.List() {
		each, counted := importOf(from), map[string]bool{}
		for _, slice := range l.Local.ManagedSlices(types.NamespacedName{Namespace: each.Namespace, Name: each.Name}) {
			if export.IsExposed(slice) {
				continue
			}
			source := slice.Labels[export.LabelSourceCluster]
			m := cmp.Or(members[source], &state.Member{}) // the local cluster is no member
			if !counted[source] {
				m.Services++
			}
			counted[source] = true
			for j := range slice.Endpoints {
				each.Endpoints++
				m.Endpoints++
				if export.IsReady(&slice.Endpoints[j]) {
					each.Ready++
					m.Ready++
				}
			}
		}
		out.Imports = append(out.Imports, each)
	}
	slices.SortFunc(out.Imports, func(a, b state.Import) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	out.Findings = l.findings()
	return out
}

// member returns the state of a member, without the counts of its imports.
func (l *Leader) member(m *member.Member) state.Member {
	known := l.Tracker.Of(m.Cluster())
	out := state.Member{
		Cluster: m.Cluster(), Controller: known.Heartbeat.Version, State: known.Verdict.State.String(),
		Reason: string(known.Verdict.Reason), Path: known.Path.String(), Drained: known.Drained, Rank: m.Rank(),
		LastHeartbeat: known.Arrivals.Last.UTC(), Synced: m.Synced(), Credential: m.Candidate().String(),
		Expires: m.Life().Expires.UTC(), Network: l.Tracker.Properties(m.Cluster())[scope.NetworkProperty],
	}
	if config := m.Config(); config != nil {
		out.Server = state.WithoutLogin(config.Host)
	}
	for _, prefix := range m.CIDRs() {
		out.CIDRs = append(out.CIDRs, prefix.String())
	}
	return out
}

// importOf returns an import, without its endpoints.
func importOf(from *v1beta1.ServiceImport) state.Import {
	out := state.Import{
		Namespace: from.Namespace, Name: from.Name, Type: string(from.Spec.Type), IPs: from.Spec.IPs, Clusters: []string{},
		Reason: "Unknown",
	}
	for _, port := range from.Spec.Ports {
		out.Ports = append(out.Ports, strings.TrimPrefix(fmt.Sprintf("%s:%d/%s", port.Name, port.Port, port.Protocol), ":"))
	}
	for _, each := range from.Status.Clusters {
		out.Clusters = append(out.Clusters, each.Cluster)
	}
	ready := meta.FindStatusCondition(from.Status.Conditions, string(v1beta1.ServiceImportConditionReady))
	switch {
	case !export.IsManaged(from):
		out.Reason = state.Foreign
	case ready != nil:
		out.Reason = ready.Reason
	}
	if ready != nil && ready.Status != metav1.ConditionTrue {
		out.Message = ready.Message
	}
	return out
}
