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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options configure a Server.
type Options struct {
	// Name is part of the UIDs that the server assigns.
	Name string
	// ServiceCIDRs are the ranges of cluster IPs, primary family first. Empty means 10.96.0.0/16.
	ServiceCIDRs []netip.Prefix
	// Administrator is the administrator's bearer token. If it is empty, requests need no token. There is no
	// authorization: every valid token has all rights.
	Administrator string
}

// A Server is an API server with its store, admission and garbage collector. It implements http.RoundTripper. Its
// methods are safe for concurrent use.
type Server struct {
	Gate    // for all clients except the administrator
	options Options

	mu      sync.Mutex
	refuse  func(Request) *apierrors.StatusError
	faults  map[string]Fault
	stopped bool
	store   store
	names   int
	// nodePorts is the number of allocated node ports.
	nodePorts int32
	tokens    map[string]time.Time // expiry of issued tokens
	// kinds caches the kinds of custom resources.
	kinds    map[schema.GroupVersionResource]customKind
	requests map[Request]int
	applied  map[string][]byte // what was last applied to an object
}

// A Request is a client's request without the identity of a single object.
type Request struct {
	// Verb is a Kubernetes verb: get, list, watch, create, update, patch, delete. Subresource is "status" or empty.
	Verb, Subresource string
	Resource          schema.GroupResource
	Namespace         string
	// Host is the host of the request's URL, which identifies the client.
	Host string
}

// New returns a server with the namespaces default and kube-system, and the ServiceCIDR of the options.
func New(options Options) *Server {
	if len(options.ServiceCIDRs) == 0 {
		options.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}
	}
	s := &Server{
		options: options, store: newStore(), kinds: map[schema.GroupVersionResource]customKind{},
		requests: map[Request]int{}, faults: map[string]Fault{}, applied: map[string][]byte{},
		tokens: map[string]time.Time{},
	}
	s.begin()
	return s
}

// RoundTrip serves a request. Refusals are in the response; an error means an outage or a fault.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) { return s.faulty(req) }

// ServeHTTP serves clients that connect over a network. A client's address is the Host of its requests.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	req.URL.Host = req.RemoteAddr
	response, err := s.RoundTrip(req)
	if err != nil {
		panic(http.ErrAbortHandler) // nobody waits for the response, or it must not be seen
	}
	defer response.Body.Close()
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	sender := http.NewResponseController(w)
	_ = sender.Flush() // a watch may have nothing to send yet, but its headers
	if _, err := io.Copy(flushed{w, sender}, response.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// flushed flushes after each write.
type flushed struct {
	io.Writer
	sender *http.ResponseController
}

func (f flushed) Write(text []byte) (int, error) {
	n, err := f.Writer.Write(text)
	return n, errors.Join(err, f.sender.Flush())
}

// answer serves a request without faults.
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

// SetRefuse makes the server call refuse before each request, to model admission, quota, authorization or overload.
// refuse runs under the server's lock and must not call the server. nil removes it.
func (s *Server) SetRefuse(refuse func(Request) *apierrors.StatusError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// Revision returns the latest revision.
func (s *Server) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.revision
}

// Compact discards all revisions up to now; like every write, it begins a new one. Open watches still get the events
// that they have not yet got, as from a watch cache. A watch that begins at an older revision gets 410.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.revision++
	s.store.compact(s.store.revision)
}

// Restart ends all watches, as if one of several servers of a cluster restarts: clients reach another one immediately.
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

// Backup returns the server's content. Backups share only immutable objects.
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

// Restore restarts the server with the content of a backup. Watches get no events for lost writes. With bump, revisions
// continue above the current one, as with --bump-revision and --mark-compacted of etcdutl; else they are reused.
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

// List returns the existing objects of a resource, in no particular order. They belong to the store and must not be
// changed. Custom resources are unstructured.
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

// later runs a part of the control plane other than the API server after controllerDelay, under the lock.
func (s *Server) later(run func()) {
	time.AfterFunc(controllerDelay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		run()
	})
}

// controllerDelay is the delay of the garbage collector and the namespace controller.
const controllerDelay = 50 * time.Millisecond
