// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/setup"
)

func newJoin(o *options) *cobra.Command {
	var servers map[string]string
	command := &cobra.Command{
		Use:   "join CONTEXT CONTEXT...",
		Short: "Join clusters, or give them new credentials",
		Long: `Join clusters, each with every other one. clusterset-controller must run in each of
them, and renews the credentials. Run it again to replace them, or to add a cluster: the
addresses of API servers stay as they are in the Secrets, unless --server sets others.`,
		Example: `  kubectl clusterset join east west north
  kubectl clusterset join east west --server east=https://10.0.0.1:6443`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			o.contexts = args
			for context, server := range servers {
				address, err := url.Parse(server)
				if err != nil || address.Scheme != "https" || address.Host == "" || !slices.Contains(args, context) {
					return fmt.Errorf("--server %s=%s: use CONTEXT=https://HOST:PORT, with one of the contexts to join",
						context, server)
				}
			}
			options, err := o.join()
			if err != nil {
				return err
			}
			options.Servers = servers
			return setup.Join(command.Context(), options)
		},
	}
	byContext(command.Flags(), &servers, "server", "address of the API server of a context as the other clusters reach it, as `CONTEXT=URL`")
	return o.with(command, "timeout", "dry-run")
}

// join returns the options of package setup, with the selected clusters.
func (o *options) join() (setup.Options, error) {
	clusters, err := o.clusters()
	return setup.Options{Clusters: clusters, DryRun: o.dryRun, Teller: o.teller()}, err
}

// newOf completes a command that removes or drains its argument, a cluster, in the selected clusters.
func newOf(o *options, command *cobra.Command, run func(context.Context, setup.Options, string) error) *cobra.Command {
	command.Args = cobra.ExactArgs(1)
	command.RunE = func(command *cobra.Command, args []string) error {
		if args[0] == "" { // would mean all members
			return errEmpty
		}
		options, err := o.join()
		if err != nil {
			return err
		}
		return run(command.Context(), options, args[0])
	}
	return o.with(command, "contexts", "timeout", "dry-run")
}

func newLeave(o *options) *cobra.Command {
	return newOf(o, &cobra.Command{
		Use:   "leave CLUSTER",
		Short: "Remove a cluster from the set",
		Long: `Remove a cluster from the set, and revoke its credentials. Select all clusters of the set,
apart from those that are lost: the others are named at the end.`,
		Example: `  kubectl clusterset leave west --contexts east,west,north
  kubectl clusterset leave west --contexts east,north`,
	}, setup.Leave)
}

func newDrain(o *options, drain bool) *cobra.Command {
	command := &cobra.Command{
		Use:   "drain CLUSTER",
		Short: "Move traffic away from a cluster",
		Long: `Move traffic away from a cluster. The cluster says so in its heartbeat, and all others use its
endpoints only if no other cluster has a ready one. If its API server is not reachable, select
the other clusters: their Secrets of the cluster are annotated.`,
		Example: `  kubectl clusterset drain west --contexts west
  kubectl clusterset drain west --contexts east,north`,
	}
	if !drain {
		command.Use, command.Short, command.Long = "undrain CLUSTER", "Return traffic to a drained cluster", ""
		command.Example = strings.ReplaceAll(command.Example, "drain", "undrain")
	}
	return o.with(newOf(o, command, func(ctx context.Context, options setup.Options, name string) error {
		return setup.Drain(ctx, options, name, drain)
	}), "controller")
}

func newCoreDNS(o *options) *cobra.Command {
	enable := &cobra.Command{
		Use:   "enable",
		Short: "Forward --zone to the CoreDNS of the chart, and verify that CoreDNS answers for it",
		Example: `  kubectl clusterset coredns enable --contexts east,west
  kubectl clusterset coredns enable --context east --dry-run`,
		Args: cobra.NoArgs,
		RunE: o.coreDNS(setup.CoreDNS.Enable),
	}
	disable := &cobra.Command{
		Use:   "disable",
		Short: "Revert what enable changed for --zone",
		Example: `  kubectl clusterset coredns disable --contexts east,west
  kubectl clusterset coredns disable --context east --zone example.set`,
		Args: cobra.NoArgs,
		RunE: o.coreDNS(setup.CoreDNS.Disable),
	}
	return group("coredns", "Make CoreDNS, as kubeadm installs it, forward the zone of the set, or revert that",
		o.with(enable, "contexts", "dry-run", "zone", "timeout"), o.with(disable, "contexts", "dry-run", "zone"))
}

// coreDNS changes all clusters at once, because CoreDNS takes a minute or two to reload.
func (o *options) coreDNS(do func(setup.CoreDNS, context.Context) error) func(*cobra.Command, []string) error {
	return o.in(func(ctx context.Context, clusters []*cluster.Cluster) error {
		return cluster.Each(clusters, func(_ int, c *cluster.Cluster) error {
			return do(setup.CoreDNS{Cluster: c, Zone: o.zone, DryRun: o.dryRun, Teller: o.teller()}, ctx)
		})
	})
}
