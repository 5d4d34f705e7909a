// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// A Status is the report of the controller of a cluster.
type Status struct {
	Context string `json:"context"`
	// Unknown is why nothing else is known, as the text of Err.
	Unknown string `json:"unknown,omitempty"`
	Err     error  `json:"-"`
	*state.Cluster
}

// Statuses asks the controllers of all clusters at once.
func Statuses(ctx context.Context, clusters []*cluster.Cluster) List[Status] {
	statuses, found := make(List[Status], len(clusters)), make([]state.Findings, len(clusters))
	_ = cluster.Each(clusters, func(i int, c *cluster.Cluster) error {
		s := &statuses[i]
		s.Context = c.Context
		if s.Cluster, s.Err = c.State(ctx); s.Err != nil {
			s.Unknown = s.Err.Error()
			return s.Err
		}
		c.ID, found[i] = s.Cluster.Cluster, s.Findings
		return nil
	})
	fill(clusters, found)
	return statuses
}

// Text writes a status as text.
func (s Status) Text(out io.Writer) {
	if s.Cluster == nil {
		fmt.Fprintf(out, "Context %s: unknown: %s\n", s.Context, s.Unknown)
		return
	}
	summary := []string{"controller " + s.Controller, "MCS API " + cmp.Or(s.MCSVersion, "not served")}
	if s.HeartbeatStopped != "" {
		summary = append(summary, "heartbeat stopped ("+s.HeartbeatStopped+")")
	}
	if s.Drained {
		summary = append(summary, "drained")
	}
	if s.Queue > 0 {
		summary = append(summary, reconciling(s.Queue))
	}
	fmt.Fprintf(out, "Cluster %s (context %s): %s\n", s.Cluster.Cluster, s.Context, strings.Join(summary, ", "))
	var members, imports [][]any
	for _, m := range s.Members {
		how := m.State
		if m.Path == "unreachable" {
			how += "," + m.Path
		}
		if m.Drained {
			how += ",drained"
		}
		seen := "not yet"
		if !m.LastHeartbeat.IsZero() {
			seen = duration.HumanDuration(max(s.Now.Sub(m.LastHeartbeat), 0)) // as kubectl prints ages
		}
		members = append(members, []any{m.Cluster, how, seen, m.Services, fmt.Sprintf("%d/%d", m.Ready, m.Endpoints)})
	}
	for i := range s.Imports {
		imports = append(imports, importRow(&s.Imports[i]))
	}
	Table(out, "\n", "MEMBER STATE HEARTBEAT SERVICES READY", members)
	Table(out, "\n", importHeadings, imports)
	for i, finding := range s.Findings {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "! %s\n", finding.What)
	}
}

const importHeadings = "IMPORT TYPE IPS PORTS CLUSTERS READY STATUS"

func importRow(i *state.Import) []any {
	return []any{
		i.Namespace + "/" + i.Name, i.Type, strings.Join(i.IPs, ","), strings.Join(i.Ports, ","), strings.Join(i.Clusters, ","),
		fmt.Sprintf("%d/%d", i.Ready, i.Endpoints), i.Reason,
	}
}

func reconciling(count int) string { return fmt.Sprintf("%d services are being reconciled", count) }

// Pending returns why the clusters are not ready, the first reason per cluster, or nothing if they are. A cluster is
// ready if its controller runs, the other clusters are its members, all members are fresh and read, nothing waits to be
// reconciled, and the imports are ready. Imports of other implementations do not count.
func Pending(statuses []Status) []string {
	var pending []string
	for i := range statuses {
		if why := statuses[i].pending(statuses); why != "" {
			pending = append(pending, statuses[i].Context+": "+why)
		}
	}
	return pending
}

func (s Status) pending(all []Status) string {
	switch {
	case s.Cluster == nil:
		return s.Unknown
	case s.HeartbeatStopped != "":
		return "the heartbeat has stopped: " + s.HeartbeatStopped
	}
	for _, other := range all {
		if other.Cluster != nil && other.Cluster.Cluster != s.Cluster.Cluster &&
			!slices.ContainsFunc(s.Members, func(m state.Member) bool { return m.Cluster == other.Cluster.Cluster }) {
			return other.Cluster.Cluster + " is not a member"
		}
	}
	for _, m := range s.Members {
		switch {
		case m.State != "fresh":
			return fmt.Sprintf("member %s is %s (%s)", m.Cluster, m.State, m.Reason)
		case !m.Synced, m.LastHeartbeat.IsZero():
			return fmt.Sprintf("member %s has not been read, or no heartbeat arrived yet", m.Cluster)
		}
	}
	if s.Queue > 0 {
		return reconciling(s.Queue)
	}
	for _, i := range s.Imports {
		if i.Reason != string(v1beta1.ServiceImportReasonReady) && i.Reason != state.Foreign {
			return strings.TrimSuffix(fmt.Sprintf("import %s/%s is not ready (%s): %s", i.Namespace, i.Name, i.Reason, i.Message), ": ")
		}
	}
	return ""
}

// fill replaces placeholders for contexts in the fixes of each cluster's findings: its own ID comes first, because another cluster
// may have it, too. Commands get the flag --system-namespace if they need it.
func fill(clusters []*cluster.Cluster, found []state.Findings) {
	for i, c := range clusters {
		pairs := []string{"kubectl clusterset", "kubectl clusterset" + (&Cluster{Cluster: c}).system()}
		for _, each := range append([]*cluster.Cluster{c}, clusters...) {
			pairs = append(pairs, "<context of "+each.ID+">", each.Context)
		}
		replacer := strings.NewReplacer(pairs...)
		for j := range found[i] {
			found[i][j].Fix = replacer.Replace(found[i][j].Fix)
		}
	}
}
