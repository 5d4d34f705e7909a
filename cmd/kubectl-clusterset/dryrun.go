// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// dryRun is kubectl's flag --dry-run.
type dryRun string

const (
	// dryRunNone writes.
	dryRunNone dryRun = ""
	// dryRunClient sends no write.
	dryRunClient dryRun = "client"
	// dryRunServer has the API servers check every write, and write nothing.
	dryRunServer dryRun = "server"
)

// bare is the value of --dry-run without one.
const bare = "unspecified"

// String implements pflag.Value.
func (d *dryRun) String() string {
	if *d == dryRunNone {
		return "none"
	}
	return string(*d)
}

// Set implements pflag.Value.
func (d *dryRun) Set(text string) error {
	switch text {
	case "none":
		*d = dryRunNone
	case "client", "server":
		*d = dryRun(text)
	case bare:
		return errors.New("use --dry-run=client or --dry-run=server")
	default:
		return errors.New("use none, client or server")
	}
	return nil
}

// Type implements pflag.Value.
func (d *dryRun) Type() string { return "string" }

// all is the field DryRun of options of a write.
func (d *dryRun) all() []string {
	return cluster.DryRun(*d == dryRunServer)
}

// addDryRun adds --dry-run. Commands whose writes depend on what the API servers
// answer to those before have no client.
func (o *options) addDryRun(command *cobra.Command, client bool) {
	usage, values := "`none` or server; server: API servers validate every write and store nothing",
		[]cobra.Completion{"none", "server"}
	if client {
		usage = "`none`, client or server; client: no write is sent; server: API servers validate every write and store " +
			"nothing"
		values = append(values, "client")
	}
	command.Flags().Var(&o.dryRun, "dry-run", usage)
	command.Flags().Lookup("dry-run").NoOptDefVal = bare
	_ = command.RegisterFlagCompletionFunc("dry-run",
		cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if client {
		return
	}
	run := command.RunE
	command.RunE = func(command *cobra.Command, args []string) error {
		if o.dryRun == dryRunClient {
			return usageError{fmt.Errorf("--dry-run=client: %s needs the answers of the API servers: use --dry-run=server",
				command.Name())}
		}
		return run(command, args)
	}
}
