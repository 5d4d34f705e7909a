// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/install"
)

func newInstall(o *options) *cobra.Command {
	var ids []string
	var image string
	command := &cobra.Command{
		Use:     "install",
		Aliases: []string{"upgrade"},
		Short:   "Install the controller without Helm, or upgrade it",
		Long: `Install the controller, its rights and the CRDs of the Multi-Cluster Services API, or
upgrade them to this version. An upgrade keeps the cluster id, the flags of the controller, and
the repository of its image.`,
		Example: `  kubectl clusterset install --context east --cluster-id east
  kubectl clusterset upgrade --contexts east,west`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.each(func(c *cluster.Cluster, all int) error {
				id, err := idOf(ids, c.Context, all)
				if err != nil {
					return err
				}
				return install.Install(command.Context(), install.Options{
					Cluster: c, ID: id, Image: image, DryRun: o.dryRun != dryRunNone, Teller: o.teller(),
				})
			})
		},
	}
	command.Flags().StringArrayVar(&ids, "cluster-id", nil,
		"id of the cluster, as `[CONTEXT=]ID`; empty means that of the controller, else of the ClusterProperty; "+
			"may be repeated")
	command.Flags().StringVar(&image, "image", "",
		"`image` of the controller; empty means that of this version, in the repository of the controller if it is "+
			"installed")
	o.addContexts(command)
	o.addWait(command.Flags())
	o.addDryRun(command, false)
	return command
}

func newUninstall(o *options) *cobra.Command {
	crds := false
	command := &cobra.Command{
		Use:   "uninstall",
		Short: "Delete what install applied, and what the controller made",
		Long: `Delete what install applied, and what the controller made. The cluster must have left the
set. ServiceExports and the CRDs stay, unless --crds is set.`,
		Example: `  kubectl clusterset leave north --contexts east,west,north
  kubectl clusterset uninstall --context north`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.each(func(c *cluster.Cluster, _ int) error {
				return install.Uninstall(command.Context(), install.Options{
					Cluster: c, DryRun: o.dryRun != dryRunNone, Teller: o.teller(),
				}, crds)
			})
		},
	}
	command.Flags().BoolVar(&crds, "crds", false,
		"also delete the CRDs, and with them every ServiceExport and ServiceImport")
	o.addContexts(command)
	o.addWait(command.Flags())
	o.addDryRun(command, false)
	return command
}

// each does something with each of the selected clusters, of which there are
// all, up to the first error.
func (o *options) each(do func(c *cluster.Cluster, all int) error) error {
	clusters, err := o.clusters()
	if err != nil {
		return err
	}
	for _, c := range clusters {
		if err := do(c, len(clusters)); err != nil {
			return fmt.Errorf("context %s: %w", c.Context, err)
		}
	}
	return nil
}

// idOf is the cluster id that the flags give for a context, empty if they give
// none.
func idOf(texts []string, context string, all int) (string, error) {
	for _, text := range slices.Backward(texts) { // the last one counts, as of other flags
		at := strings.LastIndex(text, "=")
		switch {
		case at < 0 && all > 1:
			return "", usageError{fmt.Errorf("--cluster-id %s: use CONTEXT=ID, because %d clusters are selected", text, all)}
		case at < 0:
			return text, nil
		case text[:at] == context:
			return text[at+1:], nil
		}
	}
	return "", nil
}
