// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/explain"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/join"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// options are what the flags that several commands have say.
type options struct {
	genericiooptions.IOStreams
	config          *genericclioptions.ConfigFlags
	contexts        []string
	systemNamespace string
	timeout         time.Duration
	dryRun          bool
	output          string
	zone            string
	dns             []string
}

func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{IOStreams: streams, config: genericclioptions.NewConfigFlags(true)}
	// What says how to reach one cluster makes no sense for several.
	o.config.APIServer, o.config.ClusterName, o.config.AuthInfoName, o.config.BearerToken = nil, nil, nil, nil
	o.config.CertFile, o.config.KeyFile, o.config.CAFile, o.config.Insecure, o.config.TLSServerName = nil, nil, nil, nil, nil
	o.config.CacheDir, o.config.DisableCompression = nil, nil
	root := &cobra.Command{
		Use:   "kubectl-clusterset",
		Short: "Join clusters, look at the set, and ask why a name answers what it answers",
		Long: `kubectl clusterset joins clusters into a set, looks at it, and says why a name
answers what it answers. It uses the contexts of your kubeconfig and your rights.`,
		Version:       versionOf(version, debug.ReadBuildInfo),
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl clusterset"},
		Args:          cobra.NoArgs,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w: see %s --help", err, command.CommandPath())}
	})
	set := root.PersistentFlags()
	o.config.AddFlags(set)
	set.StringVar(&o.systemNamespace, "system-namespace", member.DefaultNamespace, "`namespace` of the controller")
	// Completion needs no cluster and offers contexts where it can.
	_ = root.RegisterFlagCompletionFunc("context", o.completeContexts)
	root.AddCommand(
		newJoin(o), newLeave(o), newDrain(o, true), newDrain(o, false), newExport(o, true), newExport(o, false),
		newStatus(o), newExplain(o), newCheck(o), newCoreDNS(o), newManifest(o),
	)
	wrapArgs(root)
	return root
}

// wrapArgs makes errors of arguments those of a wrong command line.
func wrapArgs(command *cobra.Command) {
	if check := command.Args; check != nil {
		command.Args = func(command *cobra.Command, args []string) error {
			if err := check(command, args); err != nil {
				return usageError{fmt.Errorf("%w: see %s --help", err, command.CommandPath())}
			}
			return nil
		}
	}
	for _, sub := range command.Commands() {
		wrapArgs(sub)
	}
}

func (o *options) addContexts(command *cobra.Command) {
	command.Flags().StringSliceVar(&o.contexts, "contexts", nil, "`contexts` of the clusters that are asked or changed; empty means the one of --context")
	_ = command.RegisterFlagCompletionFunc("contexts", o.completeContexts)
}

func (o *options) addWait(set *pflag.FlagSet) {
	set.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long to wait")
}

func (o *options) addDryRun(set *pflag.FlagSet) {
	set.BoolVar(&o.dryRun, "dry-run", false, "have the API servers check every write, and write nothing")
}

func (o *options) addOutput(command *cobra.Command) {
	command.Flags().StringVarP(&o.output, "output", "o", "", "`format`: wide, json or yaml; empty means text")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]cobra.Completion{"wide", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

func (o *options) addZone(set *pflag.FlagSet) {
	set.StringVar(&o.zone, "zone", explain.DefaultZone, "`zone` of the set")
}

func (o *options) addDNS(set *pflag.FlagSet) {
	set.StringSliceVar(&o.dns, "dns", nil, "`address` of the cluster's DNS, with a port or without, after CONTEXT= where there are several; empty means a port-forward to CoreDNS")
}

func (o *options) teller() progress.Teller {
	return progress.Teller{Out: o.ErrOut, Results: o.Out, Timeout: o.timeout}
}

// join is the part of the options that is about writing.
func (o *options) join(clusters []*cluster.Cluster) join.Options {
	return join.Options{Clusters: clusters, DryRun: o.dryRun, Teller: o.teller()}
}

// names are the contexts that the flags name.
func (o *options) names() ([]string, error) {
	if len(o.contexts) > 0 {
		seen := map[string]bool{}
		for _, name := range o.contexts {
			if seen[name] {
				return nil, usageError{fmt.Errorf("--contexts names %s twice", name)}
			}
			seen[name] = true
		}
		return o.contexts, nil
	}
	if *o.config.Context != "" {
		return []string{*o.config.Context}, nil
	}
	raw, err := o.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, err
	}
	if raw.CurrentContext == "" {
		return nil, usageError{fmt.Errorf("no cluster is named: use --contexts, or set a current context")}
	}
	return []string{raw.CurrentContext}, nil
}

// open prepares the use of contexts.
func (o *options) open(names []string) ([]*cluster.Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = *o.config.KubeConfig
	overrides := &clientcmd.ConfigOverrides{ClusterDefaults: clientcmd.ClusterDefaults, Timeout: *o.config.Timeout}
	overrides.AuthInfo.Impersonate = *o.config.Impersonate
	overrides.AuthInfo.ImpersonateGroups = *o.config.ImpersonateGroup
	overrides.AuthInfo.ImpersonateUID = *o.config.ImpersonateUID
	clusters := make([]*cluster.Cluster, len(names))
	for i, name := range names {
		var err error
		if clusters[i], err = cluster.Open(rules, overrides, name, o.systemNamespace); err != nil {
			return nil, err
		}
	}
	return clusters, nil
}

// clusters are those that the flags name.
func (o *options) clusters() ([]*cluster.Cluster, error) {
	names, err := o.names()
	if err != nil {
		return nil, err
	}
	return o.open(names)
}

// service reads NAMESPACE/SERVICE, or SERVICE in the namespace of the flags.
func (o *options) service(text string) (types.NamespacedName, error) {
	namespace, name, both := strings.Cut(text, "/")
	if !both {
		name = text
		var err error
		if namespace, _, err = o.config.ToRawKubeConfigLoader().Namespace(); err != nil {
			return types.NamespacedName{}, err
		}
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, usageError{fmt.Errorf("%q is no service: use NAMESPACE/SERVICE", text)}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

func (o *options) completeContexts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	raw, err := o.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.Sorted(maps.Keys(raw.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// completeServices offers the services that are exported or imported.
func (o *options) completeServices(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	clusters, err := o.clusters()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(command.Context(), 3*time.Second)
	defer cancel()
	names := map[string]bool{}
	for _, c := range clusters {
		// What cannot be listed is not offered.
		imports, err := c.ServiceImports(ctx, "")
		for i := range imports {
			names[imports[i].Namespace+"/"+imports[i].Name] = err == nil
		}
		exports, err := c.ServiceExports(ctx, "")
		for i := range exports {
			names[exports[i].Namespace+"/"+exports[i].Name] = err == nil
		}
	}
	return slices.Sorted(maps.Keys(names)), cobra.ShellCompDirectiveNoFileComp
}

// versionOf is the version that was set, or that of the module or the revision
// this was built from.
func versionOf(set string, read func() (*debug.BuildInfo, bool)) string {
	if set != "" {
		return set
	}
	if info, ok := read(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
