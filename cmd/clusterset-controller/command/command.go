// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	goflag "flag"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/clusterprofile"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// namespaceFile has the namespace in which the pod runs.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// flags are the values of the command line's flags. controller.Run validates the options.
type flags struct {
	controller.Options
	kubeconfig    string
	namespace     string
	bindAddress   string
	healthAddress string
	probeAddress  string
	loggingFormat string
}

// Command returns the command line of the program. The version is empty if none was set when it was built.
func Command(version string) *cobra.Command {
	f := &flags{Options: controller.DefaultOptions()}
	command := &cobra.Command{
		Use:   "clusterset-controller",
		Short: "Join this cluster's services with those of the other clusters of its set",
		Long: `clusterset-controller publishes the services that its cluster exports, and imports
those that the other clusters of the set export, as the Multi-Cluster Services
API (KEP-1645) says. It reads other clusters, and writes to its own.`,
		Version:       cmp.Or(version, "unknown"),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := setLogging(f.loggingFormat, command.Flags()); err != nil {
				return err
			}
			f.Version = command.Version
			return f.run(command.Context())
		},
	}
	set := command.Flags()
	set.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig `file` of the local cluster; empty means $KUBECONFIG or ~/.kube/config, else the pod's service account")
	set.StringVar(&f.Cluster, "cluster-id", "",
		"`id` of the local cluster: a DNS label, or two joined with a dot, of at most 63 characters; empty means ClusterProperty cluster.clusterset.k8s.io")
	set.StringVar(&f.namespace, "namespace", "",
		"namespace of the members' Secrets, the heartbeat and the leader Lease; empty means the pod's, else "+
			member.DefaultNamespace)
	set.StringVar(&f.MemberTokens, "member-tokens", "",
		"`directory` with a token for each member whose kubeconfig has no credential, in a file with the member's id as its name")
	set.StringArrayVar(&f.MembersFrom, "members-from", nil,
		"a `source` of more members: "+clusterprofile.Form+"; may be repeated. The selector is "+member.ClusterLabel+" by default")
	set.StringSliceVar(&f.DeniedNamespaces, "denied-namespaces", f.DeniedNamespaces,
		"`patterns` of namespaces that are neither exported nor imported")
	set.StringSliceVar(&f.Accept, "accept", f.Accept,
		"`patterns`, namespace or namespace/service, of what members without annotation "+scope.AcceptAnnotation+
			" may contribute; empty means nothing")
	set.StringVar(&f.Prefer, "prefer", f.Prefer,
		"`tiers` of clusters for imports without a preference: cluster (the local one), cluster selectors separated by >, or none")
	set.StringVar(&f.Network, "network", "",
		"`name` of the network of this cluster's pods; empty means ClusterProperty "+scope.NetworkProperty)
	set.StringVar(&f.Expose, "expose", f.Expose,
		"`way` in which clusters of other networks reach exports without annotation "+export.AnnotationExpose+
			": NodePort (derives Services with node ports), LoadBalancer, Gateway or None")
	set.StringVar(&f.NodeAddresses, "node-addresses", f.NodeAddresses,
		"`type` of the addresses of nodes without annotation "+export.AnnotationNodeAddress+" for NodePort: InternalIP or ExternalIP")
	set.DurationVar(&f.Liveness.StaleAfter, "stale-after", f.Liveness.StaleAfter,
		"time without a heartbeat after which a member's endpoints are demoted, and time of a local fault after which the local heartbeat stops; at least 20s")
	set.DurationVar(&f.Liveness.GoneAfter, "gone-after", 0,
		"time without a heartbeat after which a member's imports are removed, more than --stale-after; 0 means never")
	set.IntVar(&f.MemberLimits.Services, "member-services", f.MemberLimits.Services,
		"maximum number of services imported from a member")
	set.IntVar(&f.MemberLimits.Endpoints, "member-endpoints", f.MemberLimits.Endpoints,
		"maximum number of endpoints of a member's services")
	set.BoolVar(&f.LeaderElection, "leader-elect", f.LeaderElection,
		"elect a leader among the replicas; if false, run only one replica")
	set.StringVar(&f.bindAddress, "bind-address", ":8080",
		"`address` of /metrics and, for forwarded connections, /statusz and /explainz; empty means none")
	set.StringVar(&f.healthAddress, "health-address", "",
		"`address` of /healthz and /readyz; empty serves them at --bind-address")
	set.StringVar(&f.probeAddress, "probe-address", "",
		"`address` that other clusters probe to test the path to pods of this cluster; empty disables probes in both directions")
	set.StringVar(&f.loggingFormat, "logging-format", "text",
		"`format` of the log: text or json")
	logging := goflag.NewFlagSet("logging", goflag.ContinueOnError)
	klog.InitFlags(logging)
	set.AddGoFlag(logging.Lookup("v"))
	set.Lookup("v").Usage = "verbosity of the log"
	command.CompletionOptions.DisableDefaultCmd = true
	// The probe is a part of this program because every cluster can pull its image.
	command.AddCommand(&cobra.Command{
		Use:    "probe IDENTITY [NAME=IDENTITY]...",
		Short:  "Echo and probe for kubectl clusterset test connectivity",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return probe(command.Context(), command.OutOrStdout(), args[0], args[1:])
		},
	})
	return command
}

// complete fills in the options that are not flags.
func (f *flags) complete() error {
	own, _ := os.ReadFile(namespaceFile) // exists in a pod
	f.Namespace = cmp.Or(f.namespace, strings.TrimSpace(string(own)), f.Namespace)
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	var err error
	f.Config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("the local cluster: %w: set --kubeconfig or $KUBECONFIG, or run as a pod with a service account", err)
	}
	return nil
}
