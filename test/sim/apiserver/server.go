// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options are what a Server is made from.
type Options struct {
	// Name is part of the UIDs that the server gives.
	Name string
	// ServiceCIDRs are the ranges of cluster IPs, the first family first. None means 10.96.0.0/16.
	ServiceCIDRs []netip.Prefix
	// Administrator is a bearer token. Empty means that the server asks nobody for one. There are no rights: who has a token
	// may do all.
	Administrator string
}

// A Server is an API server with its store, admission and garbage collector. It
// implements http.RoundTripper. Its methods are safe for concurrent use.
type Server struct {
	Gate    // of all but the administrator
	options Options

	mu      sync.Mutex
	refuse  func(Request) *apierrors.StatusError
	faults  map[string]Fault
	stopped bool
	store   store
	names   int
	// nodePorts is how many node ports were allocated.
	nodePorts int32
	tokens    map[string]time.Time // when those that were issued expire
	// kinds are those of custom resources that were asked for.
	kinds    map[schema.GroupVersionResource]customKind
	requests map[Request]int
}

// A Request is what a client asks, without what identifies a single object.
type Request struct {
	// Verb is the one of Kubernetes: get, list, watch, create, update, patch, delete; Subresource is "status" or empty.
	Verb, Subresource string
	Resource          schema.GroupResource
	Namespace         string
	// Host is that of the URL that was asked, which tells clients apart.
	Host string
}

// New returns a server that has the namespaces default and kube-system, and its ServiceCIDR.
func New(options Options) *Server {
	if len(options.ServiceCIDRs) == 0 {
		options.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}
	}
	s := &Server{
		options: options, store: newStore(), kinds: map[schema.GroupVersionResource]customKind{},
		requests: map[Request]int{}, faults: map[string]Fault{},
		tokens: map[string]time.Time{},
	}
	s.begin()
	return s
}

// RoundTrip serves a request. What is wrong with it is in the response: the error is that of an outage or a fault.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) { return s.faulty(req) }

// ServeHTTP serves clients that connect over a network. Their address is the Host of their requests.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	req.URL.Host = req.RemoteAddr
	response, err := s.RoundTrip(req)
	if err != nil {
		panic(http.ErrAbortHandler) // nobody waits for the answer, or it is to see none
	}
	defer response.Body.Close()
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	sender := http.NewResponseController(w)
	_ = sender.Flush() // a watch may have nothing to send yet
	if _, err := io.Copy(flushed{w, sender}, response.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// flushed sends what is written at once.
type flushed struct {
	io.Writer
	sender *http.ResponseController
}

func (f flushed) Write(text []byte) (int, error) {
	n, err := f.Writer.Write(text)
	return n, errors.Join(err, f.sender.Flush())
}

// answer answers as a server that works.
func (s *Server) answer(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	body, err := readBody(req)
	if err != nil {
		return nil, fmt.Errorf("body of %s %s: %w", req.Method, req.URL.Path, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serve(req, body), nil //nolint:contextcheck // a watch lasts as long as the context of its request
}

// Write creates an object, which names its kind, or replaces the one of its name but for its status: what an administrator
// does, without the way to the server.
func (s *Server) Write(object runtime.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.about(object)
	object = object.DeepCopyObject()
	if _, is := object.(*unstructured.Unstructured); t.kind.custom() && !is {
		object = &unstructured.Unstructured{Object: need(runtime.DefaultUnstructuredConverter.ToUnstructured(object))}
	}
	failure := t.kind.accept(object)
	if old, missing := s.existing(t); failure == nil && missing != nil {
		_, failure = s.add(t, object)
	} else if failure == nil {
		access(object).SetResourceVersion(access(old).GetResourceVersion())
		_, failure = s.replace(t, object)
	}
	if failure != nil {
		return failure
	}
	return nil
}

// Delete deletes an object, which names its kind, if it exists.
func (s *Server) Delete(object runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.about(object)
	if old, missing := s.existing(t); missing == nil {
		s.terminate(t.Resource, old, metav1.DeleteOptions{})
	}
}

// about is a request about an object.
func (s *Server) about(object runtime.Object) *target {
	resource, _ := meta.UnsafeGuessKindToResource(object.GetObjectKind().GroupVersionKind())
	m := access(object)
	return &target{
		Request: Request{Resource: resource.GroupResource(), Namespace: m.GetNamespace()}, kind: s.kindOf(resource), name: m.GetName(),
	}
}

// SetRefuse makes the server ask refuse about each request first: admission, quota, authorization or overload. refuse
// runs under the server's lock and must not call the server. nil ends that.
func (s *Server) SetRefuse(refuse func(Request) *apierrors.StatusError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// Revision is the last one that the server gave out.
func (s *Server) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.revision
}

// Compact forgets all revisions until now: one more begins, as any write begins one. Watches that are open see what they
// did not see yet, as those of a watch cache do; a watch that begins at an older revision gets 410.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.revision++
	s.store.compact(s.store.revision)
}

// Restart ends all watches, as one of several servers of a cluster does that restarts: clients reach another one.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.endAll()
}

// A Backup is the content of a Server at one moment.
type Backup struct {
	revision int64
	objects  map[schema.GroupResource]map[string]runtime.Object
}

// Backup returns what the server holds. Backups share nothing that changes.
func (s *Server) Backup() *Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Backup{s.store.revision, cloned(s.store.objects)}
}

func cloned(objects map[schema.GroupResource]map[string]runtime.Object) map[schema.GroupResource]map[string]runtime.Object {
	clone := maps.Clone(objects)
	for resource, each := range clone {
		clone[resource] = maps.Clone(each)
	}
	return clone
}

// Restore restarts the server with the content of a backup: watches see nothing of what was lost. Revisions are given out
// anew, or continue those of now with one that no watch is at, as with --bump-revision and --mark-compacted of etcdutl.
func (s *Server) Restore(backup *Backup, bump bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision := backup.revision
	if bump {
		revision = s.store.revision + 1
	}
	s.store.revision, s.store.compacted, s.store.cached, s.store.log = revision, revision, revision, nil
	s.store.objects = cloned(backup.objects)
	s.store.endAll()
}

// Requests returns how often each Request was served or refused.
func (s *Server) Requests() map[Request]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.requests)
}

// List returns the objects of a resource that exist, in no order. They are the
// store's and must not be changed. Custom resources are unstructured.
func List[T runtime.Object](s *Server, resource schema.GroupResource) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	objects := make([]T, 0, len(s.store.objects[resource]))
	for _, each := range s.store.objects[resource] {
		if typed, ok := each.(T); ok {
			objects = append(objects, typed)
		}
	}
	return objects
}

// later runs a part of the control plane that is not the API server after a moment, under the lock.
func (s *Server) later(run func()) {
	time.AfterFunc(controllerDelay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		run()
	})
}

// controllerDelay is how long the garbage collector and the namespace controller take.
const controllerDelay = 50 * time.Millisecond
