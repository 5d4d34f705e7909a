// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/nodecache"
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
	flags.BoolVar(&nodeLocal, "node-local", false, "make NodeLocal DNSCache pass the zone, too, and verify that from a pod")
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
		o.addDryRun(sub.Flags())
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
		change.Cluster, change.Zone, change.DryRun, change.Teller = c, o.zone, o.dryRun, o.teller()
		if err := do(ctx, change); err != nil {
			return fmt.Errorf("context %s: %w", c.Context, err)
		}
		if change.NodeLocal && !change.DryRun {
			if err := o.verifyNodeLocal(ctx, c); err != nil {
				return fmt.Errorf("context %s: %w", c.Context, err)
			}
		}
	}
	return nil
}

// verifyNodeLocal asks NodeLocal DNSCache for the zone, as pods do. What enable changed is kept in any case: caches
// may take longer. That they cannot be asked is no error of enable.
func (o *options) verifyNodeLocal(ctx context.Context, c *cluster.Cluster) error {
	teller := o.teller()
	teller.Timeout *= 2 // the intervals of the kubelet and of the cache add up
	answers, err := nodecache.Ask(ctx, nodecache.Options{Cluster: c, Zone: o.zone, Wait: true, Teller: teller})
	if ctx.Err() != nil {
		return err
	}
	again := "`kubectl clusterset check --node-local --contexts " + c.Context + "`"
	if err != nil {
		o.teller().Say("NodeLocal DNSCache could not be queried (%v). Verify it later with %s", err, again)
		return nil
	}
	for _, answer := range answers {
		if !answer.Serves() {
			return fmt.Errorf("the NodeLocal DNSCache of node %s, queried at %s by a pod, returns %s for zone %s. All changes "+
				"are kept: restart it with `kubectl --context %s -n %s rollout restart daemonset %s`, then run %s",
				answer.Node, answer.Server, answer.Text(), o.zone, c.Context, coredns.Namespace, answer.Cache, again)
		}
		o.teller().Did("NodeLocal DNSCache of node %s, queried at %s by a pod, serves %s", answer.Node, answer.Server, o.zone)
	}
	return nil
}
