// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
	"github.com/clusterset-dns/clusterset-dns/cmd/version"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// versions are what runs where.
type versions struct {
	// Client is the version of this program.
	Client string `json:"client"`
	// Clusters are the selected ones, none with --client.
	Clusters []clusterVersion `json:"clusters"`
}

type clusterVersion struct {
	Context string `json:"context"`
	// Controller is the version of the leading controller, empty if it does not answer, and Unreachable why.
	Controller  string `json:"controller,omitempty"`
	Unreachable string `json:"unreachable,omitempty"`
}

func newVersion(o *options) *cobra.Command {
	client := false
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the controllers",
		Example: `  kubectl clusterset version --client
  kubectl clusterset version --contexts east,west -o json`,
		Args: cobra.ExactArgs(0),
		RunE: func(command *cobra.Command, _ []string) (err error) {
			var clusters []*cluster.Cluster
			if !client {
				if clusters, err = o.clusters(); err != nil {
					return err
				}
			}
			all, failed := o.states(command.Context(), clusters)
			found := versionsOf(clusters, all, failed)
			return errors.Join(output.Print(o.Out, o.output, "Version", found, found.text), unanswered(failed))
		},
	}
	command.Flags().BoolVar(&client, "client", false, "print the version of this program alone, and contact no cluster")
	return o.with(command, "contexts", "output", "controller")
}

// versionsOf are the versions that the controllers said, or why they did not.
func versionsOf(clusters []*cluster.Cluster, all []*state.Cluster, failed []error) versions {
	found := versions{Client: version.Of(build), Clusters: make([]clusterVersion, len(clusters))}
	for i, c := range clusters {
		found.Clusters[i] = clusterVersion{Context: c.Context}
		if failed[i] != nil {
			found.Clusters[i].Unreachable = failed[i].Error()
		} else {
			found.Clusters[i].Controller = all[i].Controller
		}
	}
	return found
}

func (v versions) text(out io.Writer, _ bool) error {
	fmt.Fprintln(out, "Client: "+v.Client)
	var err error
	for _, each := range v.Clusters {
		if each.Unreachable != "" {
			_, err = fmt.Fprintf(out, "Context %s: unknown: %s\n", each.Context, each.Unreachable)
		} else {
			_, err = fmt.Fprintf(out, "Context %s: %s\n", each.Context, each.Controller)
		}
	}
	return err
}
