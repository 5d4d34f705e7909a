// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
)

// newProbe is what kubectl clusterset runs in pods. It is a part of this program because every cluster can pull its
// image.
func newProbe() *cobra.Command {
	return &cobra.Command{
		Use:    "probe IDENTITY [NAME=IDENTITY]...",
		Short:  "Echo and probe for kubectl clusterset test connectivity",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return probe.Run(command.Context(), command.OutOrStdout(), args[0], args[1:])
		},
	}
}
