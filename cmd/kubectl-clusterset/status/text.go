// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
)

func itoa(n int32) string { return strconv.Itoa(int(n)) }

// Text writes a status as text.
func (s Status) Text(out io.Writer, wide bool) error {
	if s.Unreachable != "" {
		_, err := fmt.Fprintf(out, "Context %s: unreachable: %s\n", s.Context, s.Unreachable)
		return err
	}
	fmt.Fprintf(out, "Cluster %s (context %s): %s\n", output.Dash(s.Cluster), s.Context,
		strings.Join(s.summary(), ", "))
	var rows [][]any
	for _, m := range s.Members {
		state := m.State
		if m.Path == liveness.Unreachable.String() || m.Path == liveness.Unproven.String() {
			state += "," + m.Path
		}
		if m.Drained {
			state += ",drained"
		}
		rows = append(rows, []any{
			m.Cluster, state, s.age(m.Heard), m.Services, fmt.Sprintf("%d/%d", m.Ready, m.Endpoints), m.lag(s.now),
			m.credential(s.now),
			output.Dash(m.Server), output.Dash(m.ServerName), output.Dash(m.Proxy), output.Dash(m.UID),
		})
	}
	if err := section(out, wide, "MEMBER STATE HEARTBEAT SERVICES READY LAG CREDENTIAL +SERVER +TLS_NAME +PROXY +UID", rows); err != nil {
		return err
	}
	for _, m := range s.Members {
		if m.Warning != "" {
			fmt.Fprintf(out, "! %s: %s\n", m.Cluster, m.Warning)
		}
		if m.Ending {
			fmt.Fprintf(out, "! %s: its credential (Secret %s) expires at %s and was not renewed: see the log of the controller, "+
				"or join it again\n", m.Cluster, m.Credential, m.Expires.UTC().Format(time.RFC3339))
		}
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
	for _, i := range s.Imports {
		if i.Message != "" {
			fmt.Fprintf(out, "! %s/%s: %s\n", i.Namespace, i.Name, i.Message)
		}
	}
	if err := section(out, wide, "CONFLICT REASON MESSAGE", troubleRows(s.Conflicts)); err != nil {
		return err
	}
	return section(out, wide, "INVALID_EXPORT REASON MESSAGE", troubleRows(s.Invalid))
}

func troubleRows(troubles []Trouble) [][]any {
	var rows [][]any
	for _, trouble := range troubles {
		rows = append(rows, []any{trouble.Namespace + "/" + trouble.Name, trouble.Reason, trouble.Message})
	}
	return rows
}

func section(out io.Writer, wide bool, headings string, rows [][]any) error {
	if len(rows) > 0 {
		fmt.Fprintln(out)
	}
	return output.Table(out, wide, headings, rows)
}

func (s Status) summary() []string {
	var parts []string
	if s.Heartbeat == nil {
		parts = append(parts, "no heartbeat")
	} else {
		parts = append(parts, "heartbeat "+s.age(s.Heartbeat)+" ago")
	}
	if s.Controller != "" {
		parts = append(parts, "controller "+s.Controller)
	}
	if s.Drained {
		parts = append(parts, "drained")
	}
	if s.MCSVersion == "" {
		parts = append(parts, "MCS API not served")
	} else {
		parts = append(parts, "MCS API "+s.MCSVersion)
	}
	return append(parts, "Kubernetes "+s.Version)
}

func (s Status) age(at *metav1.Time) string {
	if at == nil {
		return "never"
	}
	return output.Age(at.Time, s.now)
}

func (m Member) lag(now time.Time) string {
	switch {
	case m.Behind == nil:
		return "?"
	case *m.Behind == 0:
		return "0"
	case m.Since == nil:
		return strconv.Itoa(*m.Behind)
	}
	return fmt.Sprintf("%d (%s)", *m.Behind, output.Age(m.Since.Time, now))
}

func (m Member) credential(now time.Time) string {
	switch {
	case m.Credential == "":
		return "?"
	case m.Expires == nil:
		return "no expiry"
	case !m.Expires.After(now):
		return "expired"
	}
	return output.Age(now, m.Expires.Time)
}
