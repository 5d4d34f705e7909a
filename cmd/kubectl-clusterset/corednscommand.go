// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
)

// coreDNSImage is set with -ldflags where the release has an image of CoreDNS.
var coreDNSImage string

func newCoreDNS(o *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "coredns",
		Short: "Add the plugin multicluster to CoreDNS as kubeadm installs it, or remove it",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	var image string
	enable := &cobra.Command{
		Use:   "enable",
		Short: "Run the CoreDNS image of clusterset-dns, add multicluster to the Corefile, and grant its permissions",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if image == "" {
				return usageError{errors.New(
					"this build has no default image of CoreDNS with multicluster: set --image")}
			}
			return o.coreDNS(command.Context(), coredns.Enable, image)
		},
	}
	enable.Flags().StringVar(&image, "image", coreDNSImage, "`image` of CoreDNS with multicluster")
	disable := &cobra.Command{
		Use:   "disable",
		Short: "Remove what enable added for --zone",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.coreDNS(command.Context(), coredns.Disable, "")
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

func (o *options) coreDNS(ctx context.Context, do func(context.Context, coredns.Options) error, image string) error {
	clusters, err := o.clusters()
	if err != nil {
		return err
	}
	for _, c := range clusters {
		if err := do(ctx, coredns.Options{
			Cluster: c, Image: image, Zone: o.zone, DryRun: o.dryRun != dryRunNone,
			Teller: o.teller(),
		}); err != nil {
			return fmt.Errorf("context %s: %w", c.Context, err)
		}
	}
	return nil
}
