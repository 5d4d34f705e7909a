// SPDX-License-Identifier: Apache-2.0

// Package status prints the states of clusters.
package status

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// A Status is that of one cluster.
type Status struct {
	Context string `json:"context"`
	// Unreachable is why nothing else is known.
	Unreachable string `json:"unreachable,omitempty"`
	*state.Cluster
}

// In leaves out the imports of other namespaces.
func (s Status) In(namespace string) Status {
	if namespace != "" && s.Cluster != nil {
		s.Imports = slices.DeleteFunc(s.Imports, func(i state.Import) bool { return i.Namespace != namespace })
	}
	return s
}

// Text writes a status as text.
func (s Status) Text(out io.Writer, wide bool) error {
	if s.Cluster == nil {
		_, err := fmt.Fprintf(out, "Context %s: unknown: %s\n", s.Context, s.Unreachable)
		return err
	}
	summary := []string{"controller " + s.Controller, "MCS API " + s.MCSVersion}
	if s.MCSVersion == "" {
		summary[1] = "MCS API not served"
	}
	if s.HeartbeatStopped != "" {
		summary = append(summary, "heartbeat stopped ("+s.HeartbeatStopped+")")
	}
	if s.Drained {
		summary = append(summary, "drained")
	}
	if s.Queue > 0 {
		summary = append(summary, fmt.Sprintf("%d services are being reconciled", s.Queue))
	}
	fmt.Fprintf(out, "Cluster %s (context %s): %s\n", s.Cluster.Cluster, s.Context, strings.Join(summary, ", "))
	var rows [][]any
	for _, m := range s.Members {
		how := m.State
		if m.Path == "unreachable" || m.Path == "unproven" {
			how += "," + m.Path
		}
		if m.Drained {
			how += ",drained"
		}
		heard, ends := "never", "no expiry"
		if !m.Heard.IsZero() {
			heard = output.Age(m.Heard, s.Now)
		}
		switch {
		case m.Expires.IsZero():
		case m.Expires.Before(s.Now):
			ends = "expired"
		default:
			ends = output.Age(s.Now, m.Expires)
		}
		rows = append(rows, []any{
			m.Cluster, how, heard, m.Services, fmt.Sprintf("%d/%d", m.Ready, m.Endpoints), ends, m.Credential,
			output.Dash(m.Server), output.Dash(m.ServerName), output.Dash(m.Proxy), output.Dash(m.UID),
		})
	}
	if err := section(out, wide,
		"MEMBER STATE HEARTBEAT SERVICES READY EXPIRES +CREDENTIAL +SERVER +TLS_NAME +PROXY +UID", rows); err != nil {
		return err
	}
	rows = nil
	for _, i := range s.Imports {
		rows = append(rows, []any{
			i.Namespace + "/" + i.Name, i.Type, output.Dash(strings.Join(i.IPs, ",")),
			output.Dash(strings.Join(i.Clusters, ",")),
			fmt.Sprintf("%d/%d", i.Ready, i.Endpoints), i.Reason, output.Dash(strings.Join(i.Ports, ",")),
		})
	}
	if err := section(out, wide, "IMPORT TYPE IPS CLUSTERS READY STATUS +PORTS", rows); err != nil {
		return err
	}
	for i, finding := range s.Findings {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "! %s\n", finding.What)
	}
	return nil
}

func section(out io.Writer, wide bool, headings string, rows [][]any) error {
	if len(rows) > 0 {
		fmt.Fprintln(out)
	}
	return output.Table(out, wide, headings, rows)
}

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
		return s.Unreachable
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
		case !m.Synced, m.Heard.IsZero():
			return fmt.Sprintf("member %s has not been read yet", m.Cluster)
		}
	}
	if s.Queue > 0 {
		return fmt.Sprintf("%d services are being reconciled", s.Queue)
	}
	for _, i := range s.Imports {
		if i.Reason != string(v1beta1.ServiceImportReasonReady) && i.Reason != state.Foreign {
			return strings.TrimSuffix(fmt.Sprintf("import %s/%s is not ready (%s): %s", i.Namespace, i.Name, i.Reason, i.Message), ": ")
		}
	}
	return ""
}
