// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
  kubectl clusterset sysdump -o dump.tar.gz`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			return o.sysdump(command.Context(), clusters, cmp.Or(file, time.Now().UTC().Format("clusterset-sysdump-20060102-150405.tar.gz")))
		},
	}
	command.Flags().StringVarP(&file, "output-file", "o", "",
		"`path` of the archive; empty means clusterset-sysdump-TIME.tar.gz")
	_ = command.MarkFlagFilename("output-file")
	return o.with(command, "contexts", "zone", "controller")
}

func (o *options) sysdump(ctx context.Context, clusters []*cluster.Cluster, file string) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	all, failed := o.states(ctx, clusters)
	_, versionText := versionsOf(clusters, all, failed)
	var statusText, checkText bytes.Buffer // buffers fail no write
	_ = texts(statusesOf(clusters, all, failed, ""))(&statusText, true)
	_ = check.Text(&checkText, true, check.Run(check.Gather(ctx, clusters, all, failed, o.zone, o.server)))
	reports := map[string]string{
		"version.txt": versionText, "status.txt": statusText.String(), "check.txt": checkText.String(),
	}
	for i, c := range clusters {
		if text, err := json.MarshalIndent(all[i], "", "  "); err == nil && all[i] != nil {
			reports[sysdump.Folder(c)+"/status.json"] = string(text)
		}
	}
	folder, _, _ := strings.Cut(filepath.Base(file), ".")
	unread, err := sysdump.Write(ctx, out, folder, clusters, reports)
	if err = errors.Join(err, out.Close()); err != nil {
		_ = os.Remove(file) // the error says enough
		return err
	}
	if unread > 0 {
		o.teller().Say("%d things could not be read: see errors.txt of each cluster in the archive", unread)
	}
	o.teller().Did("%s", file)
	return nil
}
