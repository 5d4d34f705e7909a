// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/setup"
)

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
		failed := make([]error, len(clusters))
		cluster.Each(clusters, func(i int, c *cluster.Cluster) {
			if err := do(setup.CoreDNS{Cluster: c, Zone: o.zone, DryRun: o.dryRun, Teller: o.teller()}, ctx); err != nil {
				failed[i] = fmt.Errorf("context %s: %w", c.Context, err)
			}
		})
		return errors.Join(failed...)
	})
}
