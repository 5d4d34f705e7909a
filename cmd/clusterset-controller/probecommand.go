// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/probe"
)

// newProbe is what `kubectl clusterset test connectivity` runs in pods. It is a
// part of this program because every cluster can pull its image.
func newProbe() *cobra.Command {
	identity := ""
	command := &cobra.Command{
		Use:    "probe",
		Short:  "Answer and send packets for kubectl clusterset test connectivity",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return probe.Run(command.Context(), identity)
		},
	}
	command.Flags().StringVar(&identity, "identity", "", "`text` with which it answers")
	return command
}
