// SPDX-License-Identifier: Apache-2.0

package mcsapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions",
}

// A Follower keeps an Access to the served version of the MCS API.
type Follower struct {
	config     *rest.Config
	httpClient *http.Client
	inputs     *informer.FreshnessGate
	set        export.Set
	exportCRD  *informer.Informer
	importCRD  *informer.Informer
	crds       *informer.FreshnessGate

	handling sync.Mutex // held while the handler is called
	handler  Handler    // nil for none

	current atomic.Pointer[Access]
	lost    atomic.Pointer[Lost]
	looked  chan struct{}
}

// A Handler handles the events of ServiceExports and ServiceImports.
type Handler interface {
	cache.ResourceEventHandler
	// AccessChanged is called after the access was replaced or lost.
	AccessChanged()
}

// NewFollower returns a follower that has no access yet. The caches of ServiceExports and ServiceImports will be among
// the inputs. Of ServiceImports, those of the cluster set are counted as those of this controller.
func NewFollower(config *rest.Config, httpClient *http.Client, inputs *informer.FreshnessGate, set export.Set,
) (*Follower, error) {
	client, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	// No reconcile waits for definitions that are read again: a gate of their own.
	crds := &informer.FreshnessGate{}
	definition := func(name string) *informer.Informer {
		return informer.New(crds, client.Resource(definitions), informer.Options{
			Resource: "CustomResourceDefinition " + name,
			Example: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": definitions.GroupVersion().String(), "kind": "CustomResourceDefinition",
			}},
			Narrow: func(options *metav1.ListOptions) {
				options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
			},
		})
	}
	f := &Follower{
		config:     config,
		httpClient: httpClient,
		inputs:     inputs,
		set:        set,
		exportCRD:  definition(exportsDefinition),
		importCRD:  definition(importsDefinition),
		crds:       crds,
		looked:     make(chan struct{}),
	}
	f.lose(Lost{Reason: "the CustomResourceDefinitions were not read yet"})
	return f, nil
}

// Handle replaces the handler; nil means none. The one before is not called any more once Handle returns, and the new
// one is not called for what the caches show already. A handler must not call Handle.
func (f *Follower) Handle(handler Handler) {
	f.handling.Lock()
	defer f.handling.Unlock()
	f.handler = handler
}

// tell calls the handler, if there is one.
func (f *Follower) tell(event func(Handler)) {
	f.handling.Lock()
	defer f.handling.Unlock()
	if f.handler != nil {
		event(f.handler)
	}
}

// events returns a handler of ServiceExports and ServiceImports that tells them to the current handler.
func (f *Follower) events() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isInInitialList bool) {
			f.tell(func(h Handler) { h.OnAdd(object, isInInitialList) })
		},
		UpdateFunc: func(before, after any) { f.tell(func(h Handler) { h.OnUpdate(before, after) }) },
		DeleteFunc: func(object any) { f.tell(func(h Handler) { h.OnDelete(object) }) },
	}
}

// Lost is why there is no access.
type Lost struct {
	// Reason is one sentence.
	Reason string
	// Exports and Imports tell that the definition of ServiceExports or ServiceImports does not exist, and so no object
	// of it. It is false where the definition is there and cannot be used.
	Exports, Imports bool
}

// Access returns the access to the served version. It is nil while none is served.
func (f *Follower) Access() (*Access, Lost) {
	if access := f.current.Load(); access != nil {
		return access, Lost{}
	}
	return nil, *f.lost.Load()
}

// WaitForSync returns true once it is known whether the API is served, and if it is, what exists; or false if the
// context ends before. If the definitions cannot be read just then, it waits until they were read again.
func (f *Follower) WaitForSync(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-f.looked:
		return f.crds.WaitForAll(ctx)
	}
}

// Run follows until the context ends.
func (f *Follower) Run(ctx context.Context) {
	trigger := make(chan struct{}, 1)
	poke := func() {
		select {
		case trigger <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { poke() },
		UpdateFunc: func(_, _ any) { poke() },
		DeleteFunc: func(any) { poke() },
	}
	var group sync.WaitGroup
	defer group.Wait()
	for _, each := range []*informer.Informer{f.exportCRD, f.importCRD} {
		each.Handle(handler)
		group.Go(func() { each.Run(ctx) })
	}
	for _, each := range []*informer.Informer{f.exportCRD, f.importCRD} {
		select {
		case <-ctx.Done():
			return
		case <-each.Synced():
		}
	}
	stop := context.CancelFunc(func() {})
	defer func() { stop() }()
	var once sync.Once
	for {
		var done bool
		if stop, done = f.look(ctx, &group, trigger, stop); done {
			once.Do(func() { close(f.looked) })
		}
		select {
		case <-ctx.Done():
			return
		case <-trigger:
		}
	}
}

// look replaces the access where another one is due. It returns how to end the present one, and whether it came to an
// end: while it waits for caches to fill a trigger makes it give up, and the trigger stays for the next look.
func (f *Follower) look(ctx context.Context, group *sync.WaitGroup, trigger chan struct{},
	stop context.CancelFunc,
) (context.CancelFunc, bool) {
	logger := klog.FromContext(ctx)
	exports, err1 := definitionIn(f.exportCRD, exportsDefinition)
	imports, err2 := definitionIn(f.importCRD, importsDefinition)
	err := errors.Join(err1, err2)
	var version string
	if err == nil {
		version, err = negotiate(exports, imports)
	}
	before := f.current.Load()
	if err != nil {
		if f.lose(Lost{Reason: err.Error(), Exports: gone(err1), Imports: gone(err2)}) {
			logger.Info("The MCS API is not served here; install its CustomResourceDefinitions", "reason", err.Error())
		}
		stop()
		f.tell(Handler.AccessChanged)
		return func() {}, true
	}
	schemas := version + " " + exports.generation + " " + imports.generation
	if before != nil && before.schema == schemas {
		return stop, true
	}
	access, err := newAccess(f.config, f.httpClient, f.inputs, f.set, version, schemas)
	if err != nil {
		logger.Error(err, "Cannot use the served version of the MCS API", "version", version)
		return stop, true
	}
	accessCtx, end := context.WithCancel(ctx)
	if !access.start(accessCtx, group, trigger, f.events()) {
		end()
		return stop, false
	}
	f.current.Store(access)
	stop()
	logger.Info("Using the MCS API", "version", version)
	f.tell(Handler.AccessChanged)
	return end, true
}

// lose drops the access and tells whether that, or the reason, is new.
func (f *Follower) lose(why Lost) bool {
	old := f.lost.Swap(&why)
	return f.current.Swap(nil) != nil || old == nil || *old != why
}

func gone(err error) bool {
	var missing *goneError
	return errors.As(err, &missing)
}

// start fills the caches and returns true once they are full. It returns false where the context ended or a trigger
// came before.
func (a *Access) start(ctx context.Context, group *sync.WaitGroup, trigger chan struct{},
	handler cache.ResourceEventHandler,
) bool {
	for _, each := range []*informer.Informer{a.exports, a.imports} {
		each.Handle(a.counts.counted(handler))
		group.Go(func() { each.Run(ctx) })
	}
	for _, each := range []*informer.Informer{a.exports, a.imports} {
		select {
		case <-each.Synced():
		case <-ctx.Done():
			return false
		case <-trigger:
			select {
			case trigger <- struct{}{}:
			default: // another one came
			}
			return false
		}
	}
	return true
}

func definitionIn(from *informer.Informer, name string) (definition, error) {
	object, exists, err := from.Indexer().GetByKey(name)
	if err != nil {
		return definition{}, err
	}
	crd, ok := object.(*unstructured.Unstructured)
	if !exists || !ok {
		return definition{}, &goneError{name, "does not exist"}
	}
	return parseDefinition(crd)
}
