// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/check"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/sysdump"
)

func newSysdump(o *options) *cobra.Command {
	var file string
	command := &cobra.Command{
		Use:   "sysdump",
		Short: "Collect what a bug report needs into an archive",
		Long: `Collect what a bug report needs into an archive: versions, status, checks, objects,
logs and metrics of the controller and of CoreDNS. It collects no Secrets, and no
environment variables of containers. What cannot be read is named in the archive.`,
		Example: `  kubectl clusterset sysdump --contexts east,west
  kubectl clusterset sysdump --context east -o dump.tar.gz`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			now := time.Now()
			if file == "" {
				file = "clusterset-sysdump-" + now.UTC().Format("20060102-150405") + ".tar.gz"
			}
			out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			defer func() {
				if err = errors.Join(err, out.Close()); err != nil {
					_ = os.Remove(file) // the error says enough
				}
			}()
			folder, _, _ := strings.Cut(filepath.Base(file), ".")
			failed, err := sysdump.Write(command.Context(), out, folder, sysdump.Options{
				Clusters: clusters, Reports: o.reports(command.Context(), clusters), Now: now,
			})
			if err != nil {
				return err
			}
			if failed > 0 {
				o.teller().Say("%d things could not be read: see errors.txt of each cluster in the archive", failed)
			}
			o.teller().Did("%s", file)
			return nil
		},
	}
	command.Flags().StringVarP(&file, "output-file", "o", "",
		"`path` of the archive; empty means clusterset-sysdump-TIME.tar.gz")
	_ = command.MarkFlagFilename("output-file")
	return o.with(command, "contexts", "zone", "controller")
}

// reports are the outputs of version, status and check.
func (o *options) reports(ctx context.Context, clusters []*cluster.Cluster) map[string]string {
	var statusText, checkText bytes.Buffer
	all, failed := o.states(ctx, clusters)
	_, versionText := versionsOf(clusters, all, failed)
	findings := check.Run(check.Gather(ctx, clusters, all, failed, o.zone, o.server))
	// Buffers fail no write.
	_ = texts(statusesOf(clusters, all, failed, ""))(&statusText, true)
	_ = check.Text(&checkText, true, findings)
	return map[string]string{
		"version.txt": versionText, "status.txt": statusText.String(), "check.txt": checkText.String(),
	}
}
