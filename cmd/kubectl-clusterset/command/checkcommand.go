// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/check"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
)

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
		RunE: func(command *cobra.Command, _ []string) error {
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			all, failed := o.states(command.Context(), clusters)
			set := check.Gather(command.Context(), clusters, all, failed, o.zone, o.server)
			set.Pre = pre
			findings := check.Run(set)
			err = output.Print(o.Out, o.output, "CheckReport", map[string]any{"findings": findings},
				func(out io.Writer, wide bool) error {
					return check.Text(out, wide, findings)
				})
			if err == nil && check.Count(findings, check.Failed) > 0 {
				err = errWrong
			}
			return err
		},
	}
	command.Flags().BoolVar(&pre, "pre", false, "check what matters before clusterset-dns is installed")
	return o.with(command, "contexts", "output", "zone", "dns", "controller")
}
