// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/diagnosis"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

func newVersion(o *options) *cobra.Command {
	return o.with(&cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the controllers",
		Example: `  kubectl clusterset version --contexts east,west
  kubectl clusterset version --contexts east,west -o json`,
		Args: cobra.NoArgs,
		RunE: o.in(func(ctx context.Context, clusters []*cluster.Cluster) error {
			all, failed := o.states(ctx, clusters)
			document, text := versionsOf(o.version, clusters, all, failed)
			err := diagnosis.Print(o.Out, o.output, "Version", document, func(out io.Writer, _ bool) error {
				_, err := io.WriteString(out, text)
				return err
			})
			return errors.Join(err, unanswered(failed))
		}),
	}, "contexts", "output", "controller")
}

// versionsOf returns the versions that the controllers said, or why they did not, and the same as text.
func versionsOf(client string, clusters []*cluster.Cluster, all []*state.Cluster, failed []error) (document map[string]any, text string) {
	found := []map[string]string{}
	text = "Client: " + versionOf(client) + "\n"
	for i, c := range clusters {
		is := map[string]string{"context": c.Context}
		if failed[i] != nil {
			is["unknown"] = failed[i].Error()
			text += "Context " + c.Context + ": unknown: " + failed[i].Error() + "\n"
		} else {
			is["controller"] = all[i].Controller
			text += "Context " + c.Context + ": " + all[i].Controller + "\n"
		}
		found = append(found, is)
	}
	return map[string]any{"client": versionOf(client), "clusters": found}, text
}

// versionOf returns the version that was set with -ldflags, or else that of the module, which `go install` records.
func versionOf(set string) string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		set = cmp.Or(set, info.Main.Version)
	}
	return cmp.Or(set, "unknown")
}
