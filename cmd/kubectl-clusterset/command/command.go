// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/explain"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/join"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
	"github.com/clusterset-dns/clusterset-dns/cmd/version"
)

// options are the values of flags that several commands have.
type options struct {
	streams
	kubeconfig      string
	overrides       clientcmd.ConfigOverrides
	asUserExtra     []string
	single          *pflag.FlagSet // flags that apply to one cluster
	contexts        []string
	allClusters     bool
	systemNamespace string
	timeout         time.Duration
	dryRun          bool
	partial         bool
	output          string
	zone            string
	dns             []string
	controllers     []string
}

// streams are the standard streams of the process.
type streams struct {
	In          io.Reader
	Out, ErrOut io.Writer
}

func newCommand(streams streams) *cobra.Command {
	o := &options{streams: streams}
	root := &cobra.Command{
		Use:   "kubectl-clusterset",
		Short: "Join clusters, diagnose the set, and explain what a name resolves to",
		Long: `kubectl clusterset joins clusters into a set, diagnoses it, and explains what a
name resolves to. It uses the contexts and the permissions of your kubeconfig: select clusters
with --contexts east,west, or all clusters of the set with --all-clusters.`,
		Version:       version.Of(build),
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl clusterset"},
		Args:          cobra.NoArgs,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
		// Contexts are selected before a command runs.
		PersistentPreRunE: o.selectAll,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w: see %s --help", err, command.CommandPath())}
	})
	set := root.PersistentFlags()
	o.addConfig(set)
	set.StringVar(&o.systemNamespace, "system-namespace", names.Namespace, "`namespace` of the controller")
	// Completion needs no cluster and offers contexts where it can.
	_ = root.RegisterFlagCompletionFunc("context", o.completeContexts)
	for _, task := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Set up a cluster set:", []*cobra.Command{newJoin(o), newLeave(o), newCoreDNS(o)}},
		{"Export services:", []*cobra.Command{newExport(o, true), newExport(o, false)}},
		{"Diagnose:", []*cobra.Command{newStatus(o), newExplain(o), newCheck(o), newTest(o), newSysdump(o), newVersion(o)}},
		{"Maintain:", []*cobra.Command{newDrain(o, true), newDrain(o, false)}},
	} {
		root.AddGroup(&cobra.Group{ID: task.title, Title: task.title})
		for _, command := range task.commands {
			command.GroupID = task.title
			root.AddCommand(command)
		}
	}
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

// addConfig adds kubectl's flags that say how to reach a cluster. -n is for those
// commands that have a use for it.
func (o *options) addConfig(set *pflag.FlagSet) {
	set.StringVar(&o.kubeconfig, "kubeconfig", "", "`path` of the kubeconfig; empty means that of kubectl")
	_ = set.SetAnnotation("kubeconfig", cobra.BashCompFilenameExt, nil)
	flags := clientcmd.RecommendedConfigOverrideFlags("")
	flags.ContextOverrideFlags.Namespace = clientcmd.FlagInfo{}
	flags.ClusterOverrideFlags.DisableCompression = clientcmd.FlagInfo{}
	flags.AuthOverrideFlags.Username, flags.AuthOverrideFlags.Password = clientcmd.FlagInfo{}, clientcmd.FlagInfo{}
	flags.ClusterOverrideFlags.APIServer.ShortName = "s"
	clientcmd.BindOverrideFlags(&o.overrides, set, flags)
	set.StringArrayVar(&o.asUserExtra, "as-user-extra", nil, "`key=value` of the user to impersonate; can be repeated")
	o.single = pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, name := range []string{
		"server", "cluster", "user", "token", "client-certificate", "client-key",
		"certificate-authority", "tls-server-name", "insecure-skip-tls-verify",
	} {
		flag := set.Lookup(name)
		flag.Usage += " (if one cluster is selected)"
		o.single.AddFlag(flag)
	}
}

// config is the kubeconfig with the flags.
func (o *options) config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	overrides := o.overrides
	overrides.AuthInfo.ImpersonateUserExtra = map[string][]string{}
	for _, extra := range o.asUserExtra {
		key, value, _ := strings.Cut(extra, "=")
		overrides.AuthInfo.ImpersonateUserExtra[key] = append(overrides.AuthInfo.ImpersonateUserExtra[key], value)
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &overrides)
}

const serviceNamespace = "`namespace` of a SERVICE that is given without one; empty means that of the context"

func (o *options) addNamespace(command *cobra.Command, usage string) {
	command.Flags().StringVarP(&o.overrides.Context.Namespace, "namespace", "n", "", usage)
}

func (o *options) addContexts(command *cobra.Command) {
	command.Flags().StringSliceVar(&o.contexts, "contexts", nil,
		"`contexts` of the clusters to read or change, separated by commas; empty means the one of --context")
	command.Flags().BoolVar(&o.allClusters, "all-clusters", false,
		"select all clusters of the set, as the cluster of --context knows it; their contexts are found in the kubeconfig")
	_ = command.RegisterFlagCompletionFunc("contexts", o.completeContexts)
}

func (o *options) addWait(set *pflag.FlagSet) {
	set.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long to wait")
}

func (o *options) addDryRun(set *pflag.FlagSet) {
	set.BoolVar(&o.dryRun, "dry-run", false, "have the API servers validate every write, and store nothing")
}

func (o *options) addPartial(set *pflag.FlagSet) {
	set.BoolVar(&o.partial, "partial", false, "continue even if some clusters of the set are not selected")
}

func (o *options) addOutput(command *cobra.Command) {
	command.Flags().StringVarP(&o.output, "output", "o", "", "`format`: wide, json or yaml; empty means text")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]cobra.Completion{"wide", "json", "yaml"},
		cobra.ShellCompDirectiveNoFileComp))
}

func (o *options) addZone(set *pflag.FlagSet) {
	set.StringVar(&o.zone, "zone", explain.DefaultZone, "`zone` of the set")
}

func (o *options) addDNS(set *pflag.FlagSet) {
	set.StringSliceVar(&o.dns, "dns", nil, "`address` of the cluster's DNS, as [CONTEXT=]ADDRESS[:PORT]; empty means a "+
		"port-forward to CoreDNS")
}

func (o *options) addController(set *pflag.FlagSet) {
	set.StringSliceVar(&o.controllers, "controller", nil, "`address` of the leading controller, as [CONTEXT=]ADDRESS:PORT; "+
		"empty means a port-forward to its pod")
}

func (o *options) teller() progress.Teller {
	return progress.Teller{Out: o.ErrOut, Results: o.Out, Timeout: o.timeout}
}

// join is the part of the options that is about writing.
func (o *options) join(clusters []*cluster.Cluster) join.Options {
	return join.Options{Clusters: clusters, Partial: o.partial, DryRun: o.dryRun, Teller: o.teller()}
}

// names are the contexts that the flags name.
func (o *options) names() ([]string, error) {
	if len(o.contexts) > 0 {
		seen := map[string]bool{}
		for _, name := range o.contexts {
			if name == "" { // would select the current context
				return nil, usageError{errors.New("--contexts has an empty name: separate contexts by one comma")}
			}
			if seen[name] {
				return nil, usageError{fmt.Errorf("--contexts has %s twice", name)}
			}
			seen[name] = true
		}
		return o.contexts, nil
	}
	if o.overrides.CurrentContext != "" {
		return []string{o.overrides.CurrentContext}, nil
	}
	raw, err := o.config().RawConfig()
	if err != nil {
		return nil, err
	}
	if raw.CurrentContext == "" {
		return nil, usageError{errors.New("no cluster selected: use --contexts, or set a current context")}
	}
	return []string{raw.CurrentContext}, nil
}

// open prepares the use of contexts.
func (o *options) open(names []string) ([]*cluster.Cluster, error) {
	var refused error
	o.single.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && len(names) > 1 && refused == nil {
			refused = usageError{fmt.Errorf("--%s applies to one cluster, and %d are selected: set it for each context in "+
				"the kubeconfig", flag.Name, len(names))}
		}
	})
	if refused != nil {
		return nil, refused
	}
	clusters := make([]*cluster.Cluster, len(names))
	for i, name := range names {
		o.overrides.CurrentContext = name
		config, err := o.config().ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("context %s: %w", name, err)
		}
		if clusters[i], err = cluster.FromConfig(config, name, o.systemNamespace); err != nil {
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
		if namespace, _, err = o.config().Namespace(); err != nil {
			return types.NamespacedName{}, err
		}
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, usageError{fmt.Errorf("%q is not a service: use NAMESPACE/SERVICE", text)}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

func (o *options) completeContexts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	raw, err := o.config().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.Sorted(maps.Keys(raw.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// completeServices offers the Services of the clusters.
func (o *options) completeServices(command *cobra.Command, args []string, _ string) ([]cobra.Completion,
	cobra.ShellCompDirective,
) {
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
		list, err := c.Kube.CoreV1().Services("").List(ctx, metav1.ListOptions{})
		if err != nil {
			continue // What cannot be listed is not offered.
		}
		for i := range list.Items {
			names[list.Items[i].Namespace+"/"+list.Items[i].Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), cobra.ShellCompDirectiveNoFileComp
}
