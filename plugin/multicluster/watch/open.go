// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// Options select what to watch.
type Options struct {
	// Kubeconfig is the path of a kubeconfig file; empty means the service account of the pod.
	Kubeconfig string
	// Context is a context of the kubeconfig; empty means its current context.
	Context string
	// Namespaces are the namespaces to serve; empty means all. Each is watched separately, so rights in these namespaces
	// suffice.
	Namespaces []string
	// NamespaceLabels is a label selector of the namespaces to serve; empty means all.
	NamespaceLabels string
	// Labels is a label selector of the ServiceImports to serve; empty means all.
	Labels string
	// Imports are the distinct kinds of ServiceImports to serve, ServiceImports or GKEServiceImports; empty means
	// ServiceImports. The source waits for the first kind, and for the second unless it is missing or forbidden. If
	// both have an import of the same name, ServiceImports takes precedence.
	Imports []Resource
	// FallbackServices and FallbackEndpoints find addresses for ClusterSetIP imports without usable spec.ips: in the
	// Services behind the imports, then in their EndpointSlices.
	FallbackServices, FallbackEndpoints bool
	// NoEndpoints disables the watch of EndpointSlices.
	NoEndpoints bool
	// TopologyZones keeps the zones of endpoints. Nodes also watches Nodes, for the zones of clients.
	TopologyZones, Nodes bool
}

// The API groups that have ServiceImports.
const (
	// GroupMCS is the group of the Multi-Cluster Services API (KEP-1645).
	GroupMCS = mcsv1beta1.GroupName
	// GroupGKE is the group of Google Kubernetes Engine.
	GroupGKE = "net.gke.io"
)

// Load returns the client configuration that the options select, so that an invalid one is reported before anything starts.
func (o Options) Load() (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig( // without a file, that of the pod
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.Kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: o.Context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q (if empty, the service account of the pod): %w", o.Kubeconfig, err)
	}
	return config, nil
}

// sources are the running sources by key. Server blocks with the same key share a source, and a reload keeps it.
var sources = struct {
	sync.Mutex
	byKey map[string]*Source
}{byKey: make(map[string]*Source)}

// Open returns the source for the options, the content of the kubeconfig and the configuration of the index. Users with
// the same values share a source. A user leaves when its context ends, and the source stops when the last user leaves.
func Open(ctx context.Context, options Options, config *record.Config) (*Source, error) {
	var content []byte
	if options.Kubeconfig != "" {
		var err error
		if content, err = os.ReadFile(filepath.Clean(options.Kubeconfig)); err != nil {
			return nil, fmt.Errorf("reading the kubeconfig: %w", err)
		}
	}
	key := fmt.Sprintf("%#v %x %#v", options, sha256.Sum256(content), *config)
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

// Share adds a user to a source that Open returned, until the context ends. It returns false if the source has stopped.
func (s *Source) Share(ctx context.Context) bool {
	sources.Lock()
	defer sources.Unlock()
	if s.users == 0 {
		return false
	}
	s.use(ctx)
	return true
}

// use adds a user. The caller holds the lock of sources.
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
