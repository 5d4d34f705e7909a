// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/diagnosis"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

func newStatus(o *options) *cobra.Command {
	var wait bool
	command := &cobra.Command{
		Use:   "status",
		Short: "Show members, imports and findings",
		Example: `  kubectl clusterset status --contexts east,west
  kubectl clusterset status --contexts east,west --wait --timeout 5m`,
		Args: cobra.ExactArgs(0),
		RunE: func(command *cobra.Command, _ []string) error {
			if command.Flags().Changed("timeout") && !wait {
				return usageError{errors.New("--timeout needs --wait")}
			}
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			ctx := command.Context()
			statuses, failed := []clusterStatus{}, []error{}
			look := func(ctx context.Context) (string, error) {
				found, missed := states(ctx, clusters)
				if ctx.Err() != nil && len(statuses) > 0 {
					return "", ctx.Err() // what the end of the wait cut off says nothing
				}
				statuses, failed = statusesOf(clusters, found, missed, o.overrides.Context.Namespace), missed
				return strings.Join(pendingOf(statuses), "; "), nil
			}
			if wait {
				err = o.teller().Wait(ctx, look)
			} else {
				_, err = look(ctx)
			}
			if err == nil {
				err = unanswered(failed)
			}
			return errors.Join(diagnosis.Print(o.Out, o.output, "Status", map[string]any{"clusters": statuses}, texts(statuses)), err)
		},
	}
	command.Flags().BoolVar(&wait, "wait", false,
		"wait until the members are fresh and up to date, and the imports are ready")
	o.addNamespace(command, "show the imports of this `namespace` alone")
	return o.with(command, "contexts", "output", "controller", "timeout")
}

// unanswered returns an error if controllers did not answer, which the output has.
func unanswered(failed []error) error {
	wrong := slices.DeleteFunc(slices.Clone(failed), func(err error) bool { return err == nil })
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("nothing is known of %d of %d clusters: see above", len(wrong), len(failed))
}

// statusesOf are what the controllers of the clusters said, or why they did not.
func statusesOf(clusters []*cluster.Cluster, all []*state.Cluster, failed []error, namespace string) []clusterStatus {
	statuses := make([]clusterStatus, len(clusters))
	for i, c := range clusters {
		statuses[i] = clusterStatus{Context: c.Context, Cluster: all[i], Namespace: namespace}
		if failed[i] != nil {
			statuses[i].Unknown = failed[i].Error()
		} else if namespace != "" {
			all[i].Imports = slices.DeleteFunc(all[i].Imports, func(is state.Import) bool { return is.Namespace != namespace })
		}
	}
	return statuses
}

// A clusterStatus is the state of one cluster.
type clusterStatus struct {
	Context string `json:"context"`
	// Unknown is why nothing else is known.
	Unknown string `json:"unknown,omitempty"`
	*state.Cluster
	// Namespace limits the imports; empty means all.
	Namespace string `json:"-"`
}

// Text writes a status as text.
func (s clusterStatus) Text(out io.Writer, wide bool) error {
	if s.Cluster == nil {
		_, err := fmt.Fprintf(out, "Context %s: unknown: %s\n", s.Context, s.Unknown)
		return err
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
		seen, ends := "not yet", "no expiry"
		if !m.Heard.IsZero() {
			seen = age(m.Heard, s.Now)
		}
		switch {
		case m.Expires.IsZero():
		case m.Expires.Before(s.Now):
			ends = "expired"
		default:
			ends = age(s.Now, m.Expires)
		}
		members = append(members, []any{
			m.Cluster, how, seen, m.Services, fmt.Sprintf("%d/%d", m.Ready, m.Endpoints), ends, m.Credential, m.Server,
			m.ServerName, m.Proxy, m.UID,
		})
	}
	for _, i := range s.Imports {
		imports = append(imports, []any{
			i.Namespace + "/" + i.Name, i.Type, strings.Join(i.IPs, ","), strings.Join(i.Clusters, ","),
			fmt.Sprintf("%d/%d", i.Ready, i.Endpoints), i.Reason, strings.Join(i.Ports, ","),
		})
	}
	if err := diagnosis.Table(out, wide, "\n",
		"MEMBER STATE HEARTBEAT SERVICES READY EXPIRES +CREDENTIAL +SERVER +TLS_NAME +PROXY +UID", members); err != nil {
		return err
	}
	if err := diagnosis.Table(out, wide, "\n", "IMPORT TYPE IPS CLUSTERS READY STATUS +PORTS", imports); err != nil {
		return err
	}
	if s.Namespace != "" && len(s.Imports) == 0 {
		fmt.Fprintf(out, "\nThere are no imports in namespace %s.\n", s.Namespace)
	}
	for i, finding := range s.Findings {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "! %s\n", finding.What)
	}
	return nil
}

// age is the time since, as kubectl prints ages.
func age(since, now time.Time) string { return duration.HumanDuration(max(now.Sub(since), 0)) }

func reconciling(count int) string { return fmt.Sprintf("%d services are being reconciled", count) }

// pendingOf returns why the clusters are not ready, the first reason per cluster, or nothing if they are. A cluster is
// ready if its controller runs, the other clusters are its members, all members are fresh and read, nothing waits to be
// reconciled, and the imports are ready. Imports of other implementations do not count. If the imports are limited to a
// namespace, one of the clusters must have one.
func pendingOf(statuses []clusterStatus) []string {
	var pending []string
	if len(statuses) > 0 && statuses[0].Namespace != "" && !slices.ContainsFunc(statuses, func(s clusterStatus) bool {
		return s.Cluster != nil && len(s.Imports) > 0
	}) {
		pending = append(pending, "no selected cluster has an import in namespace "+statuses[0].Namespace+
			": check its name, or export a service in it")
	}
	for i := range statuses {
		if why := statuses[i].pending(statuses); why != "" {
			pending = append(pending, statuses[i].Context+": "+why)
		}
	}
	return pending
}

func (s clusterStatus) pending(all []clusterStatus) string {
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
		case !m.Synced, m.Heard.IsZero():
			return fmt.Sprintf("member %s has not been read or heard yet", m.Cluster)
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

// versionOf returns the version that was set with -ldflags, or else that of the module, which `go install` records.
func versionOf(set string) string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		set = cmp.Or(set, info.Main.Version)
	}
	return cmp.Or(set, "unknown")
}
