// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// ErrChanged is why the process must restart.
var ErrChanged = errors.New("the API server serves another version of the MCS API, or none: the process restarts")

// missing says why there is no version.
const missing = "the API server serves neither v1beta1 nor v1alpha1 of ServiceExports and ServiceImports; install the " +
	"CustomResourceDefinitions of the MCS API"

// servedEvery is how often an API asks for the served version. A change counts once it lasts for two answers: both
// CustomResourceDefinitions are installed and removed together.
const servedEvery = 10 * time.Second

// An API has clients and caches of the ServiceExports and ServiceImports of the local cluster, in the version that its API
// server served when the process started. When the version changes, the process must restart. While no version is served, the
// caches are empty. The Go types of v1beta1 are used for v1alpha1, too, which has the same schema. An older definition keeps
// fewer fields. It is safe for concurrent use once Open returned. Objects of the caches are shared and must not be changed.
type API struct {
	config    *rest.Config
	writer    *http.Client
	discovery discovery.ServerResourcesInterfaceWithContext
	reader    dynamic.Interface
	gate      *informer.FreshnessGate

	// Exports and Imports are the caches. Open sets them.
	Exports informer.Of[*v1beta1.ServiceExport]
	Imports informer.Of[*v1beta1.ServiceImport]
	version string // empty for none
	client  rest.Interface
	codec   runtime.ParameterCodec
}

// NewAPI returns an API that is not open yet. It reads with the discovery client and the reader, and writes with the writer and
// the config of the same API server.
func NewAPI(
	config *rest.Config, writer *http.Client, client discovery.DiscoveryInterface, reader dynamic.Interface,
	gate *informer.FreshnessGate,
) *API {
	return &API{
		config: config, writer: writer, discovery: discovery.ToDiscoveryInterfaceWithContext(client), reader: reader, gate: gate,
	}
}

// Open returns once the served version is known. It fills the caches until the context ends, in goroutines of the group, and
// calls restart with ErrChanged when another version is served than at first, even if none was or none is served. The error is
// from the context, or from making a client. Call it once.
func (a *API) Open(ctx context.Context, group *sync.WaitGroup, restart func(error)) (err error) {
	if err := Await(ctx, "the version of the MCS API", func(ctx context.Context) (bool, error) {
		a.version, err = a.served(ctx)
		return err == nil, err
	}); err != nil {
		return err
	}
	version := schema.GroupVersion{Group: v1beta1.GroupName, Version: a.version}
	exports := a.reader.Resource(version.WithResource(v1beta1.ServiceExportPluralName))
	a.Exports = informer.New[*v1beta1.ServiceExport](a.gate, exports, informer.Options{
		Resource: "ServiceExports", Example: &unstructured.Unstructured{}, Transform: decodeExport, Exports: true,
	})
	imports := a.reader.Resource(version.WithResource(v1beta1.ServiceImportPluralName))
	a.Imports = informer.New[*v1beta1.ServiceImport](a.gate, imports, informer.Options{
		Resource: "ServiceImports", Example: &unstructured.Unstructured{}, Transform: decode[v1beta1.ServiceImport],
	})
	if a.version == "" {
		klog.FromContext(ctx).Info("Waiting for the MCS API", "reason", missing)
	} else {
		klog.FromContext(ctx).Info("Using the MCS API", "version", a.version)
		if err := a.use(version); err != nil {
			return err
		}
		group.Go(func() { a.Exports.Run(ctx) })
		group.Go(func() { a.Imports.Run(ctx) })
	}
	group.Go(func() {
		last := a.version
		_ = wait.PollUntilContextCancel(ctx, servedEvery, false, func(ctx context.Context) (changed bool, _ error) {
			ctx, cancel := context.WithTimeout(ctx, askWithin)
			defer cancel()
			if now, err := a.served(ctx); err == nil {
				changed, last = now == last && now != a.version, now
			}
			if changed {
				restart(ErrChanged)
			}
			return changed, nil
		})
	})
	return nil
}

// served returns the version that the API server serves of both resources, the preferred one, empty for none.
func (a *API) served(ctx context.Context) (string, error) {
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		list, err := a.discovery.ServerResourcesForGroupVersionWithContext(ctx, v1beta1.GroupName+"/"+version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		serves := func(name string) bool {
			return slices.ContainsFunc(list.APIResources, func(of metav1.APIResource) bool { return of.Name == name })
		}
		if serves(v1beta1.ServiceExportPluralName) && serves(v1beta1.ServiceImportPluralName) {
			return version, nil
		}
	}
	return "", nil
}

// Version returns the served version, empty if none is served.
func (a *API) Version() string { return a.version }

// Missing says why there is no Version, empty if there is one.
func (a *API) Missing() string {
	if a.version != "" {
		return ""
	}
	return missing
}

// HasSynced reports whether the caches are full.
func (a *API) HasSynced() bool {
	return a.version == "" || a.Exports.HasSynced() && a.Imports.HasSynced()
}

// use makes clients of a version.
func (a *API) use(version schema.GroupVersion) (err error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(version, &v1beta1.ServiceExport{}, &v1beta1.ServiceImport{})
	metav1.AddToGroupVersion(scheme, version)

	config := rest.CopyConfig(a.config)
	config.GroupVersion = &version
	config.APIPath = "/apis"
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = ""
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if a.client, err = rest.RESTClientForConfigAndClient(config, a.writer); err != nil {
		return fmt.Errorf("client of %s: %w", version, err)
	}
	a.codec = runtime.NewParameterCodec(scheme)
	return nil
}

// ServiceExports returns the client of a namespace. Objects have the Go types of v1beta1 whichever version is served.
func (a *API) ServiceExports(namespace string) *gentype.Client[*v1beta1.ServiceExport] {
	return gentype.NewClient(v1beta1.ServiceExportPluralName, a.client, a.codec, namespace,
		func() *v1beta1.ServiceExport { return &v1beta1.ServiceExport{} })
}

// ServiceImports is the same for ServiceImports.
func (a *API) ServiceImports(namespace string) *gentype.Client[*v1beta1.ServiceImport] {
	return gentype.NewClient(v1beta1.ServiceImportPluralName, a.client, a.codec, namespace,
		func() *v1beta1.ServiceImport { return &v1beta1.ServiceImport{} })
}
