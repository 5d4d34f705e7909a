// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/diagnosis"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// in runs a command without arguments in the selected clusters.
func (o *options) in(run func(context.Context, []*cluster.Cluster) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, _ []string) error {
		clusters, err := o.clusters()
		if err != nil {
			return err
		}
		return run(command.Context(), clusters)
	}
}

func newStatus(o *options) *cobra.Command {
	var wait bool
	command := &cobra.Command{
		Use:   "status",
		Short: "Show members, imports and findings",
		Example: `  kubectl clusterset status --contexts east,west
  kubectl clusterset status --contexts east,west --wait --timeout 5m`,
		Args: cobra.ExactArgs(0),
		RunE: o.in(func(ctx context.Context, clusters []*cluster.Cluster) (err error) {
			statuses := diagnosis.List[diagnosis.Status]{}
			look := func(ctx context.Context) (string, error) {
				found := diagnosis.Statuses(ctx, clusters)
				if ctx.Err() != nil && len(statuses) > 0 {
					return "", ctx.Err() // an interrupted look says nothing
				}
				statuses = found
				return strings.Join(diagnosis.Pending(statuses), "; "), nil
			}
			if wait {
				err = o.teller().Wait(ctx, look)
			} else {
				_, err = look(ctx)
			}
			unknown := slices.DeleteFunc(slices.Clone(statuses), func(s diagnosis.Status) bool { return s.Err == nil })
			if err == nil && len(unknown) > 0 {
				err = fmt.Errorf("nothing is known of %d of %d clusters: see above", len(unknown), len(statuses))
			}
			return errors.Join(diagnosis.Print(o.Out, o.output, "Status", "clusters", statuses), err)
		}),
	}
	command.Flags().BoolVar(&wait, "wait", false,
		"wait until the members are fresh and up to date, and the imports are ready")
	return o.with(command, "contexts", "output", "controller", "timeout")
}

func newExplain(o *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "explain NAMESPACE/SERVICE",
		Short: "Explain what a service resolves to",
		Long: `Explain what a service resolves to in each selected cluster: which clusters export it,
which export wins if they disagree, which endpoints are used, demoted or refused and why,
and what DNS answers now.`,
		Example: `  kubectl clusterset explain shop/db --contexts east,west
  kubectl clusterset explain shop/db --context east -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			service, clusters, err := o.service(args[0])
			if err != nil {
				return err
			}
			all, failed := diagnosis.Explain(command.Context(), clusters, service, o.zone)
			err = diagnosis.Print(o.Out, o.output, "ExplanationList", "clusters", all)
			return errors.Join(err, failed)
		},
	}
	return o.with(command, "contexts", "output", "zone", "dns", "controller")
}

func newCheck(o *options) *cobra.Command {
	var pre bool
	command := &cobra.Command{
		Use:   "check",
		Short: "Diagnose problems and suggest fixes",
		Long: `Diagnose problems in and between the clusters. Each finding comes with a command
or an instruction that fixes it. The exit status is 3 if a check failed.`,
		Example: `  kubectl clusterset check --pre --contexts east,west,north
  kubectl clusterset check --contexts east,west,north`,
		Args: cobra.NoArgs,
		RunE: o.in(func(ctx context.Context, clusters []*cluster.Cluster) error {
			set := diagnosis.Gather(ctx, clusters, diagnosis.Statuses(ctx, clusters), o.zone)
			set.Pre = pre
			findings := set.Check()
			err := diagnosis.Print(o.Out, o.output, "CheckReport", "findings", findings)
			if err == nil && findings.Count(state.Failed) > 0 {
				err = errWrong
			}
			return err
		}),
	}
	command.Flags().BoolVar(&pre, "pre", false, "check what matters before clusterset-dns is installed")
	return o.with(command, "contexts", "output", "zone", "dns", "controller")
}

func newTest(o *options) *cobra.Command {
	return group("test", "Test what clusterset-dns needs of the network", o.with(&cobra.Command{
		Use:   "connectivity",
		Short: "Test whether pods reach pods of all clusters by name",
		Long: `Test whether a pod of each cluster reaches a pod of each cluster by the name of a
clusterset IP, with small and large payloads over TCP. The command creates pods, Services and
ServiceExports called clusterset-probe-… in the namespace of the controller, and deletes them. The
exit status is 3 if a connection fails.`,
		Example: `  kubectl clusterset test connectivity --contexts east,west,north
  kubectl clusterset test connectivity --contexts east,west -o json`,
		Args: cobra.NoArgs,
		RunE: o.in(func(ctx context.Context, clusters []*cluster.Cluster) error {
			if len(clusters) < 2 {
				return errors.New("one cluster is selected: select two or more with --contexts")
			}
			report, err := diagnosis.Connect(ctx, clusters, o.zone, o.teller())
			if report == nil {
				return err
			}
			err = errors.Join(err, diagnosis.Print(o.Out, o.output, "ConnectivityReport", "paths", report))
			if err == nil && report.Count(state.ProbeOK) < len(report) {
				err = errWrong
			}
			return err
		}),
	}, "contexts", "output", "zone", "timeout"))
}

func newSysdump(o *options) *cobra.Command {
	var file string
	command := &cobra.Command{
		Use:   "sysdump",
		Short: "Collect what a bug report needs into an archive",
		Long: `Collect what a bug report needs into an archive: versions, status, checks, objects,
logs and metrics of the controller and of CoreDNS. It collects no Secrets, and no
environment variables of containers. What cannot be read is named in the archive.`,
		Example: `  kubectl clusterset sysdump --contexts east,west
  kubectl clusterset sysdump -o dump.tar.gz`,
		Args: cobra.NoArgs,
		RunE: o.in(func(ctx context.Context, clusters []*cluster.Cluster) error {
			return o.sysdump(ctx, clusters, cmp.Or(file, time.Now().UTC().Format("clusterset-sysdump-20060102-150405.tar.gz")))
		}),
	}
	command.Flags().StringVarP(&file, "output-file", "o", "",
		"`path` of the archive; empty means clusterset-sysdump-TIME.tar.gz")
	return o.with(command, "contexts", "zone", "controller")
}

func (o *options) sysdump(ctx context.Context, clusters []*cluster.Cluster, file string) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	statuses := diagnosis.Statuses(ctx, clusters)
	var status, check bytes.Buffer // writes to buffers never fail
	_ = diagnosis.Print(&status, "json", "Status", "clusters", statuses)
	_ = diagnosis.Print(&check, "json", "CheckReport", "findings", diagnosis.Gather(ctx, clusters, statuses, o.zone).Check())
	reports := map[string]string{
		"version.txt": cmp.Or(o.version, "unknown") + "\n", "status.json": status.String(), "check.json": check.String(),
	}
	folder, _, _ := strings.Cut(filepath.Base(file), ".")
	unread, err := diagnosis.WriteSysdump(ctx, out, folder, clusters, reports)
	if err = errors.Join(err, out.Close()); err != nil {
		_ = os.Remove(file) // the error says enough
		return err
	}
	if unread > 0 {
		o.teller().Say("%d things could not be read: see errors.txt of each cluster in the archive", unread)
	}
	o.teller().Did("%s", file)
	return nil
}
