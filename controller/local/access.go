// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// Group is the API group of the MCS API.
const Group = v1beta1.GroupName

// Access is the MCS API in one served version: clients, and the caches of what exists. It is safe for concurrent use.
// What the caches return is shared and must not be changed.
type Access struct {
	version string
	client  rest.Interface
	codec   runtime.ParameterCodec
	exports *informer.Informer
	imports *informer.Informer
}

// newAccess prepares a version for use. Its caches fill once run.
func newAccess(
	config *rest.Config, httpClient *http.Client, reader dynamic.Interface, gate *informer.FreshnessGate, version string,
) (*Access, error) {
	groupVersion := schema.GroupVersion{Group: Group, Version: version}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(groupVersion, &v1beta1.ServiceExport{}, &v1beta1.ServiceImport{})
	metav1.AddToGroupVersion(scheme, groupVersion)

	config = rest.CopyConfig(config)
	config.GroupVersion = &groupVersion
	config.APIPath = "/apis"
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = ""
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", groupVersion, err)
	}
	cached := func(kind, resource string, decode cache.TransformFunc, indexers cache.Indexers) *informer.Informer {
		return informer.New(gate, reader.Resource(groupVersion.WithResource(resource)), informer.Options{
			Resource: kind + "s", Example: example(groupVersion, kind), Transform: decode, Indexers: indexers,
			Exports: kind == v1beta1.ServiceExportKindName,
		})
	}
	return &Access{
		version: version, client: client, codec: runtime.NewParameterCodec(scheme),
		exports: cached(v1beta1.ServiceExportKindName, v1beta1.ServiceExportPluralName, decodeExport, nil),
		imports: cached(v1beta1.ServiceImportKindName, v1beta1.ServiceImportPluralName, decode[v1beta1.ServiceImport],
			cache.Indexers{byDerivedName: derivedName}),
	}, nil
}

// example returns an object by which a reflector knows those of a kind.
func example(version schema.GroupVersion, kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(version.WithKind(kind))
	return object
}

// Handle replaces the handler of ServiceExports and ServiceImports, as Informer.Handle does.
func (a *Access) Handle(handler informer.Handler) {
	a.exports.Handle(handler)
	a.imports.Handle(handler)
}

// APIVersion is the group and version that is served, for owner references.
func (a *Access) APIVersion() string { return Group + "/" + a.version }

// ServiceExports returns the client of a namespace. Objects have the Go types of v1beta1 whichever version is served.
func (a *Access) ServiceExports(namespace string) *gentype.Client[*v1beta1.ServiceExport] {
	return gentype.NewClient(v1beta1.ServiceExportPluralName, a.client, a.codec, namespace,
		func() *v1beta1.ServiceExport { return &v1beta1.ServiceExport{} })
}

// ServiceImports is the same for ServiceImports.
func (a *Access) ServiceImports(namespace string) *gentype.Client[*v1beta1.ServiceImport] {
	return gentype.NewClient(v1beta1.ServiceImportPluralName, a.client, a.codec, namespace,
		func() *v1beta1.ServiceImport { return &v1beta1.ServiceImport{} })
}

// ServiceExport returns the cached object, nil for none.
func (a *Access) ServiceExport(key types.NamespacedName) *v1beta1.ServiceExport {
	return informer.Get[*v1beta1.ServiceExport](a.exports.Indexer(), key.String())
}

// ServiceImport returns the cached object, nil for none.
func (a *Access) ServiceImport(key types.NamespacedName) *v1beta1.ServiceImport {
	return informer.Get[*v1beta1.ServiceImport](a.imports.Indexer(), key.String())
}

// Exports lists the cached ServiceExports, in no order.
func (a *Access) Exports() []*v1beta1.ServiceExport {
	return informer.List[*v1beta1.ServiceExport](a.exports.Indexer())
}

// Imports lists the cached ServiceImports, in no order.
func (a *Access) Imports() []*v1beta1.ServiceImport {
	return informer.List[*v1beta1.ServiceImport](a.imports.Indexer())
}

// byDerivedName is the index of ServiceImports by the name that their derived Services have or would have.
const byDerivedName = "derived-name"

func derivedName(object any) ([]string, error) {
	accessed, ok := object.(metav1.Object)
	if !ok {
		return nil, nil
	}
	service := types.NamespacedName{Namespace: accessed.GetNamespace(), Name: accessed.GetName()}
	return []string{service.Namespace + "/" + export.DerivedServiceName(service)}, nil
}

// ImportsDerivedAs lists the cached ServiceImports whose derived Service has that name, or would have it, in no order:
// several only if names collide.
func (a *Access) ImportsDerivedAs(derived types.NamespacedName) []*v1beta1.ServiceImport {
	return informer.ByIndex[*v1beta1.ServiceImport](a.imports.Indexer(), byDerivedName, derived.String())
}
