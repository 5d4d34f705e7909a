// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// ErrChanged is why the process must restart.
var ErrChanged = errors.New("the CustomResourceDefinitions of the MCS API changed: the process restarts to use them")

// settle is how often an API looks for changes of the definitions, and how long a change must last: both definitions are
// installed and removed together.
const settle = 2 * time.Second

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	// names are the names of the definitions of the MCS API.
	names = []string{v1beta1.ServiceExportFullName, v1beta1.ServiceImportFullName}
	// versions that this package can use, the preferred one first.
	versions = []string{"v1beta1", "v1alpha1"}
)

// An API has clients and caches of the ServiceExports and ServiceImports of the local cluster, in the version that its API
// server served when the process started. When their CustomResourceDefinitions are installed, changed or removed, the process
// must restart. While no version is served, the caches are empty. The Go types of v1beta1 are used for v1alpha1, too, which has
// the same schema. An older definition keeps fewer fields. It is safe for concurrent use once Open returned. Objects of the
// caches are shared and must not be changed.
type API struct {
	config *rest.Config
	writer *http.Client
	reader dynamic.Interface
	gate   *informer.FreshnessGate
	// definitions are the caches of the definitions, in the order of names.
	definitions []informer.Of[*unstructured.Unstructured]

	// Exports and Imports are the caches. Open sets them.
	Exports informer.Of[*v1beta1.ServiceExport]
	Imports informer.Of[*v1beta1.ServiceImport]
	version string // empty for none
	client  rest.Interface
	codec   runtime.ParameterCodec
}

// NewAPI returns an API that is not open yet. It reads with the reader, and writes with the writer and the config of the same
// API server.
func NewAPI(config *rest.Config, writer *http.Client, reader dynamic.Interface, gate *informer.FreshnessGate) *API {
	a := &API{config: config, writer: writer, reader: reader, gate: gate}
	for _, name := range names {
		a.definitions = append(a.definitions, informer.New[*unstructured.Unstructured](gate, reader.Resource(definitions), informer.Options{
			Resource: "CustomResourceDefinition " + name, Example: &unstructured.Unstructured{},
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
		}))
	}
	return a
}

// Open returns once the definitions were read. It fills the caches until the context ends, in goroutines of the group, and
// calls restart with ErrChanged when another version or schema is served than at first, even if none was or none is served. The
// error is from the context, or from making a client. Call it once.
func (a *API) Open(ctx context.Context, group *sync.WaitGroup, restart func(error)) error {
	for _, each := range a.definitions {
		group.Go(func() { each.Run(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), a.definitions[0].HasSynced, a.definitions[1].HasSynced) {
		return ctx.Err()
	}
	begun, missing := a.look()
	version := schema.GroupVersion{Group: v1beta1.GroupName, Version: begun.version}
	exports := a.reader.Resource(version.WithResource(v1beta1.ServiceExportPluralName))
	a.Exports = informer.New[*v1beta1.ServiceExport](a.gate, exports, informer.Options{
		Resource: "ServiceExports", Example: &unstructured.Unstructured{}, Transform: decodeExport, Exports: true,
	})
	imports := a.reader.Resource(version.WithResource(v1beta1.ServiceImportPluralName))
	a.Imports = informer.New[*v1beta1.ServiceImport](a.gate, imports, informer.Options{
		Resource: "ServiceImports", Example: &unstructured.Unstructured{}, Transform: decode[v1beta1.ServiceImport],
	})
	if missing != "" {
		klog.FromContext(ctx).Info("The MCS API is not served here; install its CustomResourceDefinitions", "reason", missing)
	} else {
		if err := a.use(version); err != nil {
			return err
		}
		klog.FromContext(ctx).Info("Using the MCS API", "version", a.version)
		group.Go(func() { a.Exports.Run(ctx) })
		group.Go(func() { a.Imports.Run(ctx) })
	}
	group.Go(func() {
		for last := begun; ; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(settle):
			}
			now, _ := a.look()
			if now != begun && now == last {
				restart(ErrChanged)
				return
			}
			last = now
		}
	})
	return nil
}

// Version returns the served version, empty if none is served.
func (a *API) Version() string { return a.version }

// Missing returns one sentence that says why there is no Version, empty if there is one.
func (a *API) Missing() string {
	if a.version != "" {
		return ""
	}
	_, missing := a.look()
	return cmp.Or(missing, ErrChanged.Error())
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
	a.version, a.codec = version.Version, runtime.NewParameterCodec(scheme)
	return nil
}

// served is the version to use, and identifies the schemas; empty if no version is served.
type served struct{ version, schemas string }

// look returns what the definitions serve now, or why no version is served.
func (a *API) look() (now served, missing string) {
	common := slices.Clone(versions)
	var errs []error
	for i, name := range names {
		crd := a.definitions[i].Get(types.NamespacedName{Name: name})
		serves, err := versionsOf(crd)
		if err != nil {
			errs = append(errs, fmt.Errorf("the CustomResourceDefinition %s: %w", name, err))
			continue
		}
		common = slices.DeleteFunc(common, func(version string) bool { return !slices.Contains(serves, version) })
		now.schemas += fmt.Sprintf("%s/%d ", crd.GetUID(), crd.GetGeneration())
	}
	switch {
	case len(errs) > 0:
		return served{}, strings.ReplaceAll(errors.Join(errs...).Error(), "\n", "; ")
	case len(common) == 0:
		return served{}, fmt.Sprintf("the CustomResourceDefinitions of %s serve no common version of %v", v1beta1.GroupName, versions)
	}
	now.version = common[0]
	return now, ""
}

// versionsOf returns the versions of a CustomResourceDefinition that are served. It is an error if the API server does not
// serve it (yet).
func versionsOf(crd *unstructured.Unstructured) (serves []string, _ error) {
	if crd == nil || crd.GetDeletionTimestamp() != nil {
		return nil, errors.New("it does not exist")
	}
	var parsed struct {
		Spec struct {
			Versions []struct {
				Name   string `json:"name"`
				Served bool   `json:"served"`
			} `json:"versions"`
		} `json:"spec"`
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, &parsed); err != nil {
		return nil, err
	}
	if !meta.IsStatusConditionTrue(parsed.Status.Conditions, "Established") {
		return nil, errors.New("it is not established")
	}
	for _, version := range parsed.Spec.Versions {
		if version.Served {
			serves = append(serves, version.Name)
		}
	}
	return serves, nil
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
