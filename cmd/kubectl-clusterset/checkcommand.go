// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/check"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
)

func newCheck(o *options) *cobra.Command {
	list := false
	command := &cobra.Command{
		Use:   "check",
		Short: "Look for whatever is wrong, and say what mends it",
		Long: `Look for whatever is wrong in the clusters and between them, and say of each what
is wrong and the command that mends it. The exit status is 3 where something is.`,
		Example: `  kubectl clusterset check --contexts east,west,north`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if list {
				return check.List(o.Out)
			}
			if err := output.Validate(o.output); err != nil {
				return usageError{err}
			}
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			all, failed := gather(command.Context(), clusters, "")
			findings := check.Run(check.Gather(command.Context(), clusters, all, failed, o.zone, o.server))
			err = output.Print(o.Out, o.output, map[string]any{"findings": findings}, func(out io.Writer, wide bool) error {
				return check.Text(out, wide, findings)
			})
			if err == nil && check.Count(findings, check.Failed) > 0 {
				err = errWrong
			}
			return err
		},
	}
	command.Flags().BoolVar(&list, "list", false, "list the checks, and ask nothing")
	o.addContexts(command)
	o.addOutput(command)
	o.addZone(command.Flags())
	o.addDNS(command.Flags())
	return command
}
