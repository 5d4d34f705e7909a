// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	goflag "flag"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/cmd/version"
	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/membership"
)

// namespaceFile is where a pod finds the namespace that it runs in.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// flags are what the command line says.
type flags struct {
	kubeconfig, context string
	cluster             string
	clusterSet          string
	namespace           string
	members             []string
	execCommands        []string
	membersFrom         []string
	denied              []string
	accept              []string
	staleAfter          time.Duration
	goneAfter           time.Duration
	limits              export.Limits
	maxImports          int
	maxImportMemory     string
	prefer              string
	leaderElect         bool
	bindAddress         string
	canaryAddress       string
	loggingFormat       string
}

func newCommand() *cobra.Command {
	f := &flags{}
	command := &cobra.Command{
		Use:   "clusterset-controller",
		Short: "Join this cluster's services with those of the other clusters of its set",
		Long: `clusterset-controller publishes the services that its cluster exports, and imports
those that the other clusters of the set export, as the Multi-Cluster Services
API (KEP-1645) says. It writes only to its own cluster.`,
		Version:       version.Of(build),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			defer klog.Flush()
			if err := setLogging(f.loggingFormat, command.Flags()); err != nil {
				return err
			}
			err := run(command.Context(), f, command.Version)
			if err != nil && f.loggingFormat != logText {
				klog.FromContext(command.Context()).Error(err, "The controller ended")
				return loggedError{err}
			}
			return err
		},
	}
	set := command.Flags()
	set.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig `file` of the local cluster; empty means the pod's service account, else $KUBECONFIG or ~/.kube/config")
	set.StringVar(&f.context, "context", "", "`name` of the context to use in the kubeconfig; empty means its current one")
	set.StringVar(&f.cluster, "cluster-id", "",
		"`id` of the local cluster: a DNS label, or two joined with a dot; empty means the value of ClusterProperty cluster.clusterset.k8s.io")
	set.StringVar(&f.clusterSet, "clusterset", "",
		"`name` of the cluster set, a DNS label that is the same in all its clusters; empty means the default set. The controller manages the namespaces with label "+
			export.LabelSet+"=<name>, or of those without it for the default set")
	set.StringVar(&f.namespace, "namespace", "",
		"namespace of the members' Secrets, the heartbeat and the leader Lease; empty means the pod's, else "+
			member.DefaultNamespace)
	set.StringArrayVar(&f.members, "member", nil,
		"a member besides those that Secrets name, as `id=kubeconfig[:context]`; may be repeated")
	set.StringSliceVar(&f.execCommands, "exec-commands", nil,
		"`commands` of credential plugins (exec) that kubeconfigs of --member may run, as they name them; those in Secrets run none")
	set.StringArrayVar(&f.membersFrom, "members-from", nil,
		"a `source` of more members: "+membership.Forms+"; may be repeated. Objects need the label "+member.ClusterLabel+
			", unless a label selector follows after another colon")
	set.StringSliceVar(&f.denied, "denied-namespaces", controller.DefaultDeniedNamespaces,
		"`patterns` of namespaces that are neither exported nor imported")
	set.StringSliceVar(&f.accept, "accept", []string{accept.Everything},
		"`patterns` of what members may contribute, namespace or namespace/service, unless their Secrets have annotation "+
			accept.Annotation+"; empty means nothing. Namespaces opt in with the label of the same name")
	set.StringVar(&f.prefer, "prefer", locality.PreferNone,
		"`tiers` of clusters whose endpoints are used first if an import has no preference: cluster (the local one), cluster selectors separated by >, or none")
	set.DurationVar(&f.staleAfter, "stale-after", controller.DefaultStaleAfter,
		"how long a member may be silent before its endpoints are used only if no other cluster has a ready one, and how long a fault here may last before the own heartbeat stops")
	set.DurationVar(&f.goneAfter, "gone-after", 0,
		"how long a member may be silent before what it contributed is removed; 0 means never")
	set.IntVar(&f.limits.Services, "member-services", export.DefaultLimits.Services,
		"how many services of a member are imported at most")
	set.IntVar(&f.limits.Endpoints, "member-endpoints", export.DefaultLimits.Endpoints,
		"how many endpoints a member's services may have together; a slice counts as one at least, and a dual-stack pod once")
	set.IntVar(&f.maxImports, "max-imports", controller.DefaultMaxImports,
		"how many services are imported of all members together; each member has a part of them")
	set.StringVar(&f.maxImportMemory, "max-import-memory", "0",
		"about how much memory the slices of all members may take, such as 100Mi; 0 means a fifth of the soft memory limit, or 92Mi if there is none")
	set.BoolVar(&f.leaderElect, "leader-elect", true,
		"let one of several replicas do the work; without it this must be the only one")
	set.StringVar(&f.bindAddress, "bind-address", ":8080",
		"`address` of /metrics, /healthz and /readyz; empty means none")
	set.StringVar(&f.canaryAddress, "canary-address", "",
		"`address` at which the other clusters probe the pod network to this one; empty means that this cluster neither is probed nor probes others")
	set.StringVar(&f.loggingFormat, "logging-format", logText,
		"`format` of the log: text, or json for one object a line")
	logging := goflag.NewFlagSet("logging", goflag.ContinueOnError)
	klog.InitFlags(logging)
	set.AddGoFlag(logging.Lookup("v"))
	command.InitDefaultVersionFlag()
	command.CompletionOptions.DisableDefaultCmd = true
	command.AddCommand(newProbe())
	return command
}

func run(ctx context.Context, f *flags, version string) error {
	if err := limitMemory(os.Getenv); err != nil {
		return err
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	options.Version = version
	klog.FromContext(ctx).Info("Starting clusterset-controller", "version", version, "memoryLimit",
		debug.SetMemoryLimit(-1))
	if f.bindAddress != "" {
		var config net.ListenConfig
		if options.Listener, err = config.Listen(ctx, "tcp", f.bindAddress); err != nil {
			return fmt.Errorf("--bind-address: %w", err)
		}
		klog.FromContext(ctx).Info("Serving metrics and health", "address", options.Listener.Addr().String())
	}
	if f.canaryAddress != "" {
		var config net.ListenConfig
		if options.Canary, err = config.Listen(ctx, "tcp", f.canaryAddress); err != nil {
			return fmt.Errorf("--canary-address: %w", err)
		}
		klog.FromContext(ctx).Info("Answering probes", "address", options.Canary.Addr().String())
	}
	return controller.Run(ctx, options)
}

// options turns the command line into what the controller is made from. All
// that is wrong with it is in the error.
func (f *flags) options() (controller.Options, error) {
	members, wrong := parseMembers(f.members, f.execCommands)
	if f.cluster != "" {
		if err := member.ValidateID(f.cluster); err != nil {
			wrong = append(wrong, fmt.Errorf("--cluster-id: %w", err))
		}
	}
	for _, text := range f.membersFrom {
		if _, err := membership.Parse(text); err != nil {
			wrong = append(wrong, fmt.Errorf("--members-from %w", err))
		}
	}
	clusterSet, err := export.ParseSet(f.clusterSet)
	if err != nil {
		wrong = append(wrong, fmt.Errorf("--clusterset: %w", err))
	}
	for _, number := range []struct {
		flag  string
		value int
	}{
		{"member-services", f.limits.Services},
		{"member-endpoints", f.limits.Endpoints},
		{"max-imports", f.maxImports},
	} {
		if number.value < 1 {
			wrong = append(wrong, fmt.Errorf("--%s %d: use 1 or more", number.flag, number.value))
		}
	}
	maxImportMemory, err := resource.ParseQuantity(f.maxImportMemory)
	if err != nil || maxImportMemory.Sign() < 0 {
		wrong = append(wrong, fmt.Errorf("--max-import-memory %q: use a quantity such as 100Mi, or 0",
			f.maxImportMemory))
	}
	if err := locality.ValidatePreference(f.prefer); err != nil {
		wrong = append(wrong, fmt.Errorf("--prefer: %w", err))
	}
	config, err := f.restConfig()
	if err := errors.Join(append(wrong, err)...); err != nil {
		return controller.Options{}, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	options := controller.Options{
		Config:           config,
		Cluster:          f.cluster,
		ClusterSet:       clusterSet,
		Namespace:        f.namespace,
		Members:          members,
		ExecCommands:     f.execCommands,
		MembersFrom:      f.membersFrom,
		DeniedNamespaces: append([]string{}, f.denied...),
		Accept:           append([]string{}, f.accept...),
		Prefer:           f.prefer,
		StaleAfter:       f.staleAfter,
		GoneAfter:        f.goneAfter,
		MemberLimits:     f.limits,
		MaxImports:       f.maxImports,
		MaxImportMemory:  int(maxImportMemory.Value()),
		LeaderElection:   f.leaderElect,
		Registry:         registry,
	}
	if options.Namespace == "" {
		if namespace, err := os.ReadFile(namespaceFile); err == nil {
			options.Namespace = strings.TrimSpace(string(namespace))
		}
	}
	return options, nil
}

// restConfig reaches the local cluster: by the file that was named, else as the
// pod that this is, else by the user's kubeconfig.
func (f *flags) restConfig() (*rest.Config, error) {
	if f.kubeconfig == "" && f.context == "" {
		if config, err := rest.InClusterConfig(); err == nil {
			return config, nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: f.context}).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, errors.New("it is not known how to reach the local cluster: name its kubeconfig with --kubeconfig, as this is no pod with a service account and there is none in $KUBECONFIG or ~/.kube/config")
	case err != nil:
		return nil, fmt.Errorf("kubeconfig of the local cluster (--kubeconfig, --context): %w", err)
	}
	return config, nil
}

// parseMembers reads the values of --member and the files that they name, and
// returns all that is wrong.
func parseMembers(texts, commands []string) (members []member.Static, wrong []error) {
	for _, text := range texts {
		static, err := parseMember(text)
		if err == nil {
			if _, err = member.LoadKubeconfig(static.Kubeconfig, static.Context, commands); err != nil {
				err = fmt.Errorf("--member %q: %w", text, err)
			}
		}
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		members = append(members, static)
	}
	return members, wrong
}

// parseMember reads id=kubeconfig[:context].
func parseMember(text string) (member.Static, error) {
	id, file, ok := strings.Cut(text, "=")
	if !ok || file == "" {
		return member.Static{}, fmt.Errorf("--member %q: use <id>=<kubeconfig>[:<context>]", text)
	}
	if err := member.ValidateID(id); err != nil {
		return member.Static{}, fmt.Errorf("--member %q: %w", text, err)
	}
	path, context, _ := strings.Cut(file, ":")
	return member.Static{Cluster: id, Kubeconfig: path, Context: context}, nil
}
