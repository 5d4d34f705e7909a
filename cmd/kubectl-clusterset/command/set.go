// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/join"
)

func newJoin(o *options) *cobra.Command {
	var servers, authorities []string
	command := &cobra.Command{
		Use:   "join CONTEXT CONTEXT...",
		Short: "Join clusters, or give them new credentials",
		Long: `Join clusters, each with every other one. clusterset-controller must run in each of
them, and renews the credentials. Run it again to replace them, or to add a cluster: the
addresses of API servers stay as they are in the Secrets, unless --server sets others.`,
		Example: `  kubectl clusterset join east west north
  kubectl clusterset join east west --server east=https://10.0.0.1:6443`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: o.completeContexts,
		RunE: func(command *cobra.Command, args []string) error {
			o.contexts = args
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			options := o.join(clusters)
			if options.Servers, err = parseServers(servers); err != nil {
				return err
			}
			if options.Authorities, err = readAuthorities(authorities); err != nil {
				return err
			}
			return join.Join(command.Context(), options)
		},
	}
	command.Flags().StringArrayVar(&servers, "server", nil,
		"address of the API server of a context as the other clusters reach it, as `CONTEXT=URL`; may be repeated")
	command.Flags().StringArrayVar(&authorities, "certificate-authority", nil,
		"file with the certificate authority of the API server of a context as the other clusters reach it, as "+
			"`CONTEXT=FILE`; may be repeated")
	o.addWait(command.Flags())
	o.addDryRun(command.Flags())
	return command
}

// readAuthorities reads the files of CONTEXT=FILE.
func readAuthorities(texts []string) (map[string][]byte, error) {
	authorities := map[string][]byte{}
	for _, text := range texts {
		at := strings.LastIndex(text, "=")
		if at < 1 {
			return nil, usageError{fmt.Errorf("--certificate-authority %q: use CONTEXT=FILE", text)}
		}
		read, err := os.ReadFile(text[at+1:])
		if err != nil {
			return nil, fmt.Errorf("--certificate-authority %s: %w", text, err)
		}
		authorities[text[:at]] = read
	}
	return authorities, nil
}

// parseServers reads CONTEXT=URL. The name of a context may have an equals sign.
func parseServers(texts []string) (map[string]string, error) {
	servers := map[string]string{}
	for _, text := range texts {
		at := strings.LastIndex(text, "=https://")
		if at < 1 {
			return nil, usageError{fmt.Errorf("--server %q: use CONTEXT=https://HOST:PORT", text)}
		}
		address := text[at+1:]
		if parsed, err := url.Parse(address); err != nil || parsed.Host == "" {
			return nil, usageError{fmt.Errorf("--server %q: %q is not the address of an API server", text, address)}
		}
		servers[text[:at]] = address
	}
	return servers, nil
}

func newLeave(o *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "leave CLUSTER",
		Short: "Remove a cluster from the set",
		Long: "Remove a cluster from the set, and revoke its credentials. Select all clusters of the set " +
			"with --contexts.",
		Example: `  kubectl clusterset leave west --contexts east,west,north
  kubectl clusterset leave west --contexts east,north --partial`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.completeContexts,
		RunE: func(command *cobra.Command, args []string) error {
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			return join.Leave(command.Context(), o.join(clusters), args[0])
		},
	}
	o.addContexts(command)
	o.addPartial(command.Flags())
	o.addWait(command.Flags())
	o.addDryRun(command.Flags())
	return command
}

func newDrain(o *options, drain bool) *cobra.Command {
	command := &cobra.Command{
		Use:   "drain CLUSTER",
		Short: "Move traffic away from a cluster",
		Long: `Move traffic away from a cluster. The cluster says so in its heartbeat, and all others use its
endpoints only if no other cluster has a ready one. If its API server is not reachable, select
the other clusters: their Secrets of the cluster are annotated.`,
		Example: `  kubectl clusterset drain west --contexts west
  kubectl clusterset drain west --contexts east,north`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.completeContexts,
		RunE: func(command *cobra.Command, args []string) error {
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			return join.Drain(command.Context(), o.join(clusters), args[0], drain)
		},
	}
	if !drain {
		command.Use, command.Short, command.Long = "undrain CLUSTER", "Return traffic to a drained cluster", ""
		command.Example = strings.ReplaceAll(command.Example, "drain", "undrain")
	}
	o.addContexts(command)
	o.addDryRun(command.Flags())
	return command
}
