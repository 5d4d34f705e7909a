// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
)

func newCoreDNS(o *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "coredns",
		Short: "Make CoreDNS, as kubeadm installs it, answer for the zone of the set, or revert that",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	var image string
	var forward, nodeLocal, force bool
	enable := &cobra.Command{
		Use:   "enable",
		Short: "Make CoreDNS answer for --zone: with its own option multicluster, by --forward, or with another --image",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			mode := coredns.ByKubernetes
			switch {
			case image != "" && forward:
				return usageError{errors.New("--image and --forward exclude each other")}
			case image != "":
				mode = coredns.ByMulticluster
			case forward:
				mode = coredns.ByForward
			}
			return o.coreDNS(command.Context(), coredns.Enable, coredns.Options{
				Mode: mode, Image: image, NodeLocal: nodeLocal, Force: force,
			})
		},
	}
	flags := enable.Flags()
	flags.StringVar(&image, "image", "", "run this `image` of CoreDNS with multicluster")
	flags.BoolVar(&forward, "forward", false, "forward the zone to the CoreDNS of the chart")
	flags.BoolVar(&nodeLocal, "node-local", false, "make NodeLocal DNSCache pass the zone, too")
	flags.BoolVar(&force, "force", false, "change CoreDNS although something else manages it")
	disable := &cobra.Command{
		Use:   "disable",
		Short: "Revert what enable changed for --zone",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.coreDNS(command.Context(), coredns.Disable, coredns.Options{})
		},
	}
	for _, sub := range []*cobra.Command{enable, disable} {
		o.addContexts(sub)
		o.addWait(sub.Flags())
		o.addDryRun(sub, false)
		o.addZone(sub.Flags())
		command.AddCommand(sub)
	}
	return command
}

func (o *options) coreDNS(ctx context.Context, do func(context.Context, coredns.Options) error,
	change coredns.Options,
) error {
	clusters, err := o.clusters()
	if err != nil {
		return err
	}
	for _, c := range clusters {
		change.Cluster, change.Zone, change.DryRun, change.Teller = c, o.zone, o.dryRun != dryRunNone, o.teller()
		if err := do(ctx, change); err != nil {
			return fmt.Errorf("context %s: %w", c.Context, err)
		}
	}
	return nil
}
