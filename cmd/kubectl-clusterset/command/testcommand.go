// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/connectivity"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
)

func newTest(o *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "test",
		Short: "Test what clusterset-dns needs of the network",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newTestConnectivity(o))
	return command
}

func newTestConnectivity(o *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "connectivity",
		Short: "Test whether pods reach pods of all clusters by name",
		Long: `Test whether a pod of each cluster reaches a pod of each cluster, by its own name and
through a clusterset IP, with small and large payloads over TCP. The command creates pods, Services
and ServiceExports called clusterset-probe-… in the namespace of the controller, and deletes
them. The exit status is 3 if a connection fails.`,
		Example: `  kubectl clusterset test connectivity --contexts east,west,north
  kubectl clusterset test connectivity --contexts east,west -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			if len(clusters) < 2 {
				return usageError{errors.New("one cluster is selected: select two or more with --contexts")}
			}
			report, err := connectivity.Run(command.Context(), clusters, o.zone, o.teller())
			if report == nil {
				return err
			}
			err = errors.Join(err, output.Print(o.Out, o.output, "ConnectivityReport",
				map[string]any{"paths": report.Paths}, report.Text))
			if err == nil && report.Failed() > 0 {
				err = errWrong
			}
			return err
		},
	}
	return o.with(command, "contexts", "output", "zone", "timeout")
}
