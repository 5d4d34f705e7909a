// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of kubectl-clusterset.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/diagnosis"
)

// errWrong is returned after failed checks, which are printed already: the exit status is 3, and 1 after other errors.
var errWrong = errors.New("something is wrong")

// errEmpty is the error of an empty name, which an unset variable of a shell leaves.
var errEmpty = errors.New("an empty name selects nothing: give the name, and separate contexts by one comma")

// diagnose is the title of the group of commands whose requests time out by default, because a cluster may be unhealthy.
const (
	diagnose       = "Diagnose:"
	requestTimeout = "10s"
)

// Main runs the program, with the version that was set when it was built, and returns the exit status.
func Main(version string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process
	// Errors already say what the libraries would log.
	klog.SetLogger(klog.Logger{})
	o := &options{Out: diagnosis.Escaped{Writer: os.Stdout}, ErrOut: diagnosis.Escaped{Writer: os.Stderr}, version: version}
	switch err := execute(ctx, o, os.Args[1:]); {
	case errors.Is(err, errWrong):
		return 3
	case err != nil:
		fmt.Fprintln(o.ErrOut, "Error: "+err.Error())
		return 1
	}
	return 0
}

// Command returns the command line for documentation. Only Main runs it.
func Command() *cobra.Command { return newCommand(&options{}) }

// options are what commands have in common: the streams to which the process writes, and the values of flags.
type options struct {
	Out, ErrOut io.Writer
	// version was set when this was built.
	version string
	// shared are the flags of several commands.
	shared          *pflag.FlagSet
	kubeconfig      string
	overrides       clientcmd.ConfigOverrides
	contexts        []string
	systemNamespace string
	timeout         time.Duration
	dryRun          bool
	output          string
	zone            string
	dns             map[string]string // by context
	controllers     map[string]string
}

// execute runs a command line.
func execute(ctx context.Context, o *options, args []string) error {
	root := newCommand(o) //nolint:contextcheck // Commands get the context of ExecuteContext.
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

func newCommand(o *options) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-clusterset",
		Short: "Join clusters, diagnose the set, and explain what a name resolves to",
		Long: `kubectl clusterset joins clusters into a set, diagnoses it, and explains what a
name resolves to. It uses the contexts and the permissions of your kubeconfig: select clusters
with --contexts east,west.`,
		Version:       cmp.Or(o.version, "unknown"),
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl clusterset"},
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			given := command.Flags().Changed
			switch {
			case !slices.Contains([]string{"", "json", "yaml"}, o.output):
				return fmt.Errorf("--output %q: use json or yaml", o.output)
			case given("contexts") && len(o.contexts) == 0, given("context") && o.overrides.CurrentContext == "":
				return errEmpty
			case (command.GroupID == diagnose || command.Parent().GroupID == diagnose) && !given("request-timeout"):
				o.overrides.Timeout = requestTimeout
			}
			return nil
		},
	}
	root.SetVersionTemplate("kubectl clusterset version {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(o.Out)
	root.SetErr(o.ErrOut)
	flags := root.PersistentFlags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`path` of the kubeconfig; empty means kubectl's")
	// Of kubectl's flags, those that can apply to several clusters.
	all := clientcmd.RecommendedConfigOverrideFlags("")
	auth := all.AuthOverrideFlags
	clientcmd.BindOverrideFlags(&o.overrides, flags, clientcmd.ConfigOverrideFlags{
		AuthOverrideFlags: clientcmd.AuthOverrideFlags{
			Impersonate: auth.Impersonate, ImpersonateGroups: auth.ImpersonateGroups,
		},
		CurrentContext: all.CurrentContext, Timeout: all.Timeout,
	})
	flags.StringVar(&o.systemNamespace, "system-namespace", cluster.DefaultNamespace, "`namespace` of the controller")
	o.shared = pflag.NewFlagSet("", pflag.ContinueOnError)
	o.shared.StringSliceVar(&o.contexts, "contexts", nil,
		"`contexts` of the clusters to read or change, separated by commas; empty means the one of --context")
	o.shared.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait") // a kubelet and CoreDNS take 3 for a Corefile
	o.shared.BoolVar(&o.dryRun, "dry-run", false, "have the API servers validate every write, and store nothing")
	o.shared.StringVarP(&o.output, "output", "o", "", "`format`: json or yaml; empty means text")
	o.shared.StringVar(&o.zone, "zone", diagnosis.DefaultZone, "`zone` of the set")
	byContext(o.shared, &o.dns, "dns", "address of a cluster's DNS, as `CONTEXT=ADDRESS[:PORT]`, instead of a port-forward to CoreDNS")
	byContext(o.shared, &o.controllers, "controller",
		"address of a leading controller, as `CONTEXT=ADDRESS:PORT`, instead of a port-forward to its pod")
	for _, task := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Set up a cluster set:", []*cobra.Command{newJoin(o), newLeave(o), newCoreDNS(o)}},
		{"Export services:", []*cobra.Command{newExport(o, true), newExport(o, false)}},
		{diagnose, []*cobra.Command{newStatus(o), newExplain(o), newCheck(o), newTest(o), newSysdump(o)}},
		{"Maintain:", []*cobra.Command{newDrain(o, true), newDrain(o, false)}},
	} {
		root.AddGroup(&cobra.Group{ID: task.title, Title: task.title})
		for _, command := range task.commands {
			command.GroupID = task.title
			root.AddCommand(command)
		}
	}
	return root
}

// group returns a command that only has subcommands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(commands...)
	return command
}

// config returns the kubeconfig with the flags, and with a context: an empty one means the current context.
func (o *options) config(context string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	overrides := o.overrides
	overrides.CurrentContext = context
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &overrides)
}

// with adds shared flags to a command.
func (o *options) with(command *cobra.Command, flags ...string) *cobra.Command {
	for _, name := range flags {
		command.Flags().AddFlag(o.shared.Lookup(name))
	}
	return command
}

// byContext adds a flag for addresses by context.
func byContext(flags *pflag.FlagSet, values *map[string]string, name, usage string) {
	flags.StringToStringVar(values, name, nil, usage+"; may be repeated")
	flags.Lookup(name).DefValue = "" // not []
}

func (o *options) teller() cluster.Teller {
	return cluster.Teller{Out: o.ErrOut, Results: o.Out, Timeout: o.timeout}
}

// clusters returns the clusters that the flags select.
func (o *options) clusters() ([]*cluster.Cluster, error) {
	contexts := o.contexts
	if len(contexts) == 0 {
		raw, err := o.config("").RawConfig()
		if err != nil {
			return nil, err
		}
		contexts = []string{cmp.Or(o.overrides.CurrentContext, raw.CurrentContext)}
		if contexts[0] == "" {
			return nil, errors.New("no cluster selected: use --contexts, or set a current context")
		}
	} else if o.overrides.CurrentContext != "" {
		return nil, fmt.Errorf("--context %s and a list of contexts: name all contexts in the list",
			o.overrides.CurrentContext)
	}
	if slices.Contains(contexts, "") { // would select the current context
		return nil, errEmpty
	}
	for flag, values := range map[string]map[string]string{"controller": o.controllers, "dns": o.dns} {
		for name := range values {
			if !slices.Contains(contexts, name) {
				return nil, fmt.Errorf("--%s %s=%s: context %[2]s is not selected: select it with --contexts, or correct its name", flag, name,
					values[name])
			}
		}
	}
	clusters := make([]*cluster.Cluster, len(contexts))
	for i, name := range contexts {
		config, err := o.config(name).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("context %s: %w: see `kubectl config get-contexts`", name, err)
		}
		if clusters[i], err = cluster.FromConfig(config, name, o.systemNamespace); err != nil {
			return nil, err
		}
		clusters[i].Controller, clusters[i].DNSAddress = o.controllers[name], o.dns[name]
	}
	return clusters, nil
}

// service reads NAMESPACE/SERVICE, and returns the selected clusters, too.
func (o *options) service(text string) (service types.NamespacedName, clusters []*cluster.Cluster, err error) {
	service.Namespace, service.Name, err = cache.SplitMetaNamespaceKey(text)
	if err != nil || service.Name == "" || service.Namespace == "" {
		return service, nil, fmt.Errorf("%q is not a service: use NAMESPACE/SERVICE", text)
	}
	clusters, err = o.clusters()
	return service, clusters, err
}
