// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// ErrChanged is the error of Run when the process is to restart.
var ErrChanged = errors.New("the CustomResourceDefinitions of the MCS API changed: the process restarts to use them")

// settle is how long Run waits for further changes of the definitions: they are installed and removed together.
const settle = 3 * time.Second

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions",
}

// An API accesses the ServiceExports and ServiceImports of the local cluster in the version that its API server served when
// the process started. When their CustomResourceDefinitions change, are installed or removed, the process is to restart. The
// Go types of v1beta1 stand for v1alpha1 too, which has the same schema. An older definition keeps fewer fields. It is safe
// for concurrent use.
type API struct {
	config           *rest.Config
	httpClient       *http.Client
	reader           dynamic.Interface
	inputs           *informer.FreshnessGate
	exports, imports *informer.Informer // the definitions
	crds             *informer.FreshnessGate

	// read is closed once the definitions were read; access is fixed then.
	read   chan struct{}
	access *Access
}

// NewAPI returns an API that does not run yet. It reads with the reader, and writes with another client of the same API
// server. The caches of ServiceExports and ServiceImports will be among the inputs.
func NewAPI(config *rest.Config, httpClient *http.Client, reader dynamic.Interface, inputs *informer.FreshnessGate) *API {
	// No reconcile waits for definitions that are read again: a gate of their own.
	crds := &informer.FreshnessGate{}
	definition := func(name string) *informer.Informer {
		return informer.New(crds, reader.Resource(definitions), informer.Options{
			Resource: "CustomResourceDefinition " + name,
			Example:  example(definitions.GroupVersion(), "CustomResourceDefinition"),
			Narrow: func(options *metav1.ListOptions) {
				options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
			},
		})
	}
	return &API{
		config: config, httpClient: httpClient, reader: reader, inputs: inputs, crds: crds, read: make(chan struct{}),
		exports: definition(v1beta1.ServiceExportFullName), imports: definition(v1beta1.ServiceImportFullName),
	}
}

// Access returns the access to the served version. It is nil, with one sentence that says why, if none is served, or
// before the definitions were read.
func (a *API) Access() (_ *Access, missing string) {
	select {
	case <-a.read:
		if a.access == nil {
			missing = cmp.Or(a.look().missing, ErrChanged.Error())
		}
		return a.access, missing
	default:
		return nil, "the CustomResourceDefinitions of the MCS API were not read yet"
	}
}

// WaitForSync returns true once it is known whether the API is served, and if it is, what exists; or false if the
// context ends before. If the definitions cannot be read just then, it waits until they were read again.
func (a *API) WaitForSync(ctx context.Context) bool {
	synced := []<-chan struct{}{a.read}
	for i := 0; i < len(synced); i++ {
		select {
		case <-ctx.Done():
			return false
		case <-synced[i]:
		}
		if access, _ := a.Access(); i == 0 && access != nil {
			synced = append(synced, access.exports.Synced(), access.imports.Synced())
		}
	}
	return a.crds.WaitForAll(ctx)
}

// Run fills the caches until the context ends. It returns ErrChanged if another version or schema is served than when it
// began, also if there was none, or is none any more. It is to be called once.
func (a *API) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	changed := make(chan struct{}, 1)
	tell := func(_, _ metav1.Object) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for _, each := range []*informer.Informer{a.exports, a.imports} {
		each.Handle(tell)
		group.Go(func() { each.Run(ctx) })
	}
	for _, each := range []*informer.Informer{a.exports, a.imports} {
		select {
		case <-ctx.Done():
			return nil
		case <-each.Synced():
		}
	}
	begun := a.look()
	if begun.version == "" {
		klog.FromContext(ctx).Info("The MCS API is not served here; install its CustomResourceDefinitions", "reason",
			begun.missing)
	} else {
		access, err := newAccess(a.config, a.httpClient, a.reader, a.inputs, begun.version)
		if err != nil {
			return err
		}
		klog.FromContext(ctx).Info("Using the MCS API", "version", begun.version)
		for _, each := range []*informer.Informer{access.exports, access.imports} {
			group.Go(func() { each.Run(ctx) })
		}
		a.access = access
	}
	close(a.read)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(settle):
		}
		if now := a.look(); now.version != begun.version || now.schemas != begun.schemas {
			return ErrChanged
		}
	}
}

// served is what the definitions say.
type served struct {
	version, schemas string // empty for none
	missing          string // why there is none
}

func (a *API) look() (now served) {
	exports, noExports := definitionIn(a.exports, v1beta1.ServiceExportFullName)
	imports, noImports := definitionIn(a.imports, v1beta1.ServiceImportFullName)
	err := errors.Join(noExports, noImports)
	if err == nil {
		now.version, err = negotiate(exports, imports)
	}
	if err != nil {
		now.missing = strings.ReplaceAll(err.Error(), "\n", "; ")
		return now
	}
	for _, each := range []*definition{exports, imports} {
		now.schemas += fmt.Sprintf("%s/%d ", each.Metadata.UID, each.Metadata.Generation)
	}
	return now
}

func definitionIn(from *informer.Informer, name string) (*definition, error) {
	found, err := parseDefinition(informer.Get[*unstructured.Unstructured](from.Indexer(), name))
	if err != nil {
		err = fmt.Errorf("the CustomResourceDefinition %s: %w", name, err)
	}
	return found, err
}
