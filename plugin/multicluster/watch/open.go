// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// Options select what to watch.
type Options struct {
	// Kubeconfig is the path of a kubeconfig file; empty means the service account of the pod this runs in.
	Kubeconfig string
	// Context is that of the kubeconfig; empty means its current one.
	Context string
	// Namespaces are the only ones to serve; none means all. Up to 32 are watched each on its own, so that rights in
	// them suffice, and more by watches of all namespaces.
	Namespaces []string
	// NamespaceLabels is a label selector of the namespaces to serve; empty means all.
	NamespaceLabels string
	// Labels is a label selector of the ServiceImports to serve; empty means all.
	Labels string
	// Imports are the ServiceImports to serve, each once: ServiceImports or GKEServiceImports or both; none means
	// ServiceImports. Of several the first is waited for, and others that the API server does not have are no reason to
	// wait. Where both have an import of the same name, that of ServiceImports counts.
	Imports []Resource
	// FallbackServices and FallbackEndpoints are sources of addresses for ClusterSetIP imports without usable spec.ips:
	// the Services behind them, then their EndpointSlices.
	FallbackServices, FallbackEndpoints bool
	// NoEndpoints leaves EndpointSlices alone.
	NoEndpoints bool
	// TopologyZones asks for the zones of endpoints, and Nodes also for those of clients.
	TopologyZones, Nodes bool
}

// The API groups that have ServiceImports.
const (
	// GroupMCS is that of the Multi-Cluster Services API (KEP-1645).
	GroupMCS = mcsv1beta1.GroupName
	// GroupGKE is that of Google Kubernetes Engine.
	GroupGKE = "net.gke.io"
)

// imports are the ServiceImports to serve, in the order of the options.
func (o Options) imports() []Resource {
	if len(o.Imports) == 0 {
		return []Resource{ServiceImports}
	}
	return o.Imports
}

// maxNamespaces is up to how many namespaces are watched each on its own: each is a list and a watch for each resource.
const maxNamespaces = 32

// watchedNamespaces returns the namespaces with a watch each, or the empty one for all.
func (o Options) watchedNamespaces() []string {
	namespaces := slices.Compact(slices.Sorted(slices.Values(o.Namespaces)))
	if len(namespaces) == 0 || len(namespaces) > maxNamespaces {
		return []string{metav1.NamespaceAll}
	}
	return namespaces
}

// Load reads the credentials that the options name, so that invalid ones are reported before anything starts.
func (o Options) Load() (*rest.Config, error) {
	if o.Kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no kubeconfig is given, and this runs in no pod: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.Kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: o.Context}).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf(
			"kubeconfig %s: it names no cluster: set a current-context, or name a context after the path", o.Kubeconfig)
	case err != nil:
		return nil, fmt.Errorf("kubeconfig %s: %w", o.Kubeconfig, err)
	}
	return config, nil
}

// key identifies what the options result in: equal keys mean equal watches.
func (o Options) key() (string, error) {
	content := []byte{}
	if o.Kubeconfig != "" {
		var err error
		if content, err = os.ReadFile(filepath.Clean(o.Kubeconfig)); err != nil {
			return "", fmt.Errorf("reading the kubeconfig: %w", err)
		}
	}
	return fmt.Sprintf("%#v %x", o, sha256.Sum256(content)), nil
}

// sources are the running sources. Server blocks that want the same share one, and a reload keeps it.
var sources = struct {
	sync.Mutex
	byKey map[string]*Source
}{byKey: make(map[string]*Source)}

// Open returns the source for the options and the configuration of the index, for a user until the context ends. Users of
// equal ones, and equal content of the kubeconfig, share one. It ends with the last user.
func Open(ctx context.Context, options Options, config *record.Config) (*Source, error) {
	key, err := options.key()
	if err != nil {
		return nil, err
	}
	key += fmt.Sprintf(" %#v", *config)
	sources.Lock()
	defer sources.Unlock()
	s := sources.byKey[key]
	if s == nil {
		rest, err := options.Load()
		if err != nil {
			return nil, err
		}
		used, end := context.WithCancel(context.WithoutCancel(ctx))
		if s, err = New(used, rest, options, config); err != nil {
			end()
			return nil, err
		}
		s.end = func() {
			delete(sources.byKey, key)
			end()
		}
		sources.byKey[key] = s
	}
	s.use(ctx)
	return s, nil
}

// Share adds a user to a source that Open returned, until the context ends. It reports whether the source has not ended.
func (s *Source) Share(ctx context.Context) bool {
	sources.Lock()
	defer sources.Unlock()
	if s.users == 0 {
		return false
	}
	s.use(ctx)
	return true
}

// use adds a user. The lock of sources is held.
func (s *Source) use(ctx context.Context) {
	s.users++
	context.AfterFunc(ctx, func() {
		sources.Lock()
		defer sources.Unlock()
		if s.users--; s.users == 0 {
			s.end()
		}
	})
}
