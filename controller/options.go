// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"path"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// workers is the number of services that are reconciled at the same time.
const workers = 12

// DefaultMaxImportMemory is the budget for slices without a memory limit. It fits a container with the chart's 512 MiB.
const DefaultMaxImportMemory = 92 << 20

// DefaultOptions returns the options that Run takes as they are, but for Config. values.yaml of the chart repeats some.
func DefaultOptions() Options {
	host, _ := os.Hostname()
	return Options{
		Namespace:        member.DefaultNamespace,
		DeniedNamespaces: []string{"kube-*"},
		Accept:           []string{scope.Everything},
		Prefer:           placement.PreferNone,
		Expose:           string(export.ExposeNone),
		NodeAddresses:    string(corev1.NodeInternalIP),
		Liveness:         liveness.Limits{StaleAfter: 30 * time.Second},
		MemberLimits:     limits.Default,
		LeaderElection:   true,
		Identity:         host + "_" + string(uuid.NewUUID()),
		Clock:            clock.RealClock{},
		Lookup:           local.LookUp("/etc/resolv.conf", "53"),
		Registry:         prometheus.NewRegistry(),
	}
}

// Options configure Run. Begin with DefaultOptions.
type Options struct {
	// Config reaches the API server of the local cluster. Its rate limit is not used: the API server's priority and
	// fairness is the limit.
	Config *rest.Config
	// Cluster is the id of the local cluster. Empty means the value of the ClusterProperty cluster.clusterset.k8s.io
	// (KEP-2149).
	Cluster string
	// Version is the version of the program, for the metric build_info and the heartbeat.
	Version string
	// Namespace holds the Secrets of the members, the heartbeat and the leader Lease.
	Namespace string
	// MemberTokens is a directory with the tokens of members: see member.Config.
	MemberTokens string
	// MembersFrom are sources of more members, in the syntax of clusterprofile.New.
	MembersFrom []string
	// DeniedNamespaces are path.Match patterns of namespaces that are neither exported nor imported.
	DeniedNamespaces []string
	// Accept are patterns of the services that members without their own patterns may contribute: see
	// scope.ParsePatterns.
	Accept []string
	// Prefer is the preference of imports without one, as in placement.ParseTiers.
	Prefer string
	// Network is the network of the cluster's pods. Empty means the value of the ClusterProperty scope.NetworkProperty.
	Network string
	// Expose is how clusters of other networks reach exports without an annotation: see export.ParseExposure.
	// NodeAddresses is the type of node addresses for them: corev1.NodeInternalIP or corev1.NodeExternalIP.
	Expose, NodeAddresses string
	// Liveness limits how long members may be silent. StaleAfter is also how long a fault of the local cluster may last before
	// its own heartbeat stops.
	Liveness liveness.Limits
	// MemberLimits bound what a member may contribute.
	MemberLimits limits.Limits
	// LeaderElection makes one of several replicas lead. Without it, this must be the only replica.
	LeaderElection bool
	// Identity tells replicas apart.
	Identity string
	// Clock is the time. Leader election always uses the real one.
	Clock clock.WithTicker
	// Dial connects to the API servers and the probe targets of members; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Lookup resolves the names of load balancers.
	Lookup local.Lookup
	// Probes is the listener on the pod network that answers the probes of the members; Run closes it. Without it, the
	// controller has no probe target and no prober.
	Probes net.Listener
	// Registry takes the metrics.
	Registry *prometheus.Registry
	// Listener serves /metrics, /statusz and /explainz. Health serves /healthz and /readyz; if it is nil, Listener does.
	// Run closes both.
	Listener, Health net.Listener
}

// validate returns an error that names an invalid option by its flag.
func (o Options) validate() error {
	if o.Cluster != "" {
		if err := member.ValidateID(o.Cluster); err != nil {
			return fmt.Errorf("--cluster-id: %w", err)
		}
	}
	for _, pattern := range o.DeniedNamespaces {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("--denied-namespaces: pattern %q: %w", pattern, err)
		}
	}
	if _, err := export.ParseExposure(o.Expose); err != nil {
		return fmt.Errorf("--expose: %w", err)
	}
	if o.NodeAddresses != string(corev1.NodeInternalIP) && o.NodeAddresses != string(corev1.NodeExternalIP) {
		return fmt.Errorf("--node-addresses %q: use %s or %s", o.NodeAddresses, corev1.NodeInternalIP, corev1.NodeExternalIP)
	}
	if _, err := placement.ParseTiers(o.Prefer); err != nil {
		return fmt.Errorf("--prefer: %w", err)
	}
	if most := o.MemberLimits; min(most.Services, most.Endpoints) < 1 {
		return fmt.Errorf("--member-services %d, --member-endpoints %d: use 1 or more", most.Services, most.Endpoints)
	}
	return o.Liveness.Validate()
}

// maxImportMemory returns the budget in bytes for the slices of all members: 18 % of Go's soft memory limit (GOMEMLIMIT), which
// the chart sets to the container's, or DefaultMaxImportMemory without a limit. The cached copies of the local cluster take
// about as much again, and so do slices while they are listed anew.
func maxImportMemory() int {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return int(limit / 100 * 18)
	}
	return DefaultMaxImportMemory
}
