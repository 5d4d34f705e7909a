// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	return readAll(req.Body)
}

func readAll(body io.ReadCloser) ([]byte, error) {
	text, err := io.ReadAll(body)
	return text, errors.Join(err, body.Close())
}

// A target is the subject of a request.
type target struct {
	Request
	kind   *kind
	name   string
	format format
	query  url.Values
	media  string // the type of the body
}

// serve answers a request. The caller holds the lock.
func (s *Server) serve(req *http.Request, body []byte) *http.Response {
	if failure := s.authenticate(req); failure != nil {
		return refuse(req, failure)
	}
	t := s.target(req)
	if t == nil {
		return s.document(req)
	}
	s.requests[t.Request]++
	var object runtime.Object
	var failure *apierrors.StatusError
	if s.refuse != nil {
		failure = s.refuse(t.Request)
	}
	if failure != nil {
		return refuse(req, failure)
	}
	code := http.StatusOK
	switch t.Subresource {
	case "token":
		object, failure = s.issue(t, body)
		return t.answer(req, http.StatusCreated, object, failure)
	case "scale":
		object, failure = s.scale(t, body)
		return t.answer(req, code, object, failure)
	}
	switch t.Verb {
	case "watch":
		return s.watch(req, t)
	case "list":
		return s.list(req, t)
	case "get":
		object, failure = s.existing(t)
	case "create":
		object, failure = s.create(t, body)
		code = http.StatusCreated
	case "update":
		object, failure = s.update(t, body)
	case "patch":
		object, failure = s.patch(t, body)
	case "delete":
		object, failure = s.delete(t, body)
	case "deletecollection":
		if failure = s.deleteCollection(t, body); failure == nil {
			return respond(req, http.StatusOK, jsonType,
				[]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
		}
	default:
		failure = apierrors.NewMethodNotSupported(t.Resource, req.Method)
	}
	if failure == nil {
		object = t.format.present(object)
	}
	return t.answer(req, code, object, failure)
}

// target parses the URL of a request. It returns nil if it is not the URL of a resource.
func (s *Server) target(req *http.Request) *target {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	var version schema.GroupVersion
	switch {
	case len(parts) > 2 && parts[0] == "api":
		version, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		version, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return nil
	}
	t := &target{query: req.URL.Query()}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" {
		t.Namespace, parts = parts[1], parts[2:]
	}
	if t.kind = s.kindOf(version.WithResource(parts[0])); t.kind == nil {
		return nil
	}
	t.media, _, _ = strings.Cut(req.Header.Get("Content-Type"), ";")
	t.Resource, t.Host, t.format = t.kind.groupResource(), req.URL.Host, formatOf(req, t.kind)
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		if t.Subresource = parts[2]; !slices.Contains(t.kind.subresources(), t.Subresource) {
			return nil
		}
	}
	t.Verb = verbs[req.Method]
	if t.Verb == "get" && t.name == "" {
		t.Verb = "list"
		if watching, _ := strconv.ParseBool(t.query.Get("watch")); watching {
			t.Verb = "watch"
		}
	}
	if t.Verb == "delete" && t.name == "" {
		t.Verb = "deletecollection"
	}
	return t
}

// verbs are the verbs of requests for a single object, by method.
var verbs = map[string]string{
	http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
	http.MethodDelete: "delete",
}

func (t *target) dryRun() bool { return t.query.Get("dryRun") == metav1.DryRunAll }

// existing returns the stored object that a request names. It must not be changed.
func (s *Server) existing(t *target) (runtime.Object, *apierrors.StatusError) {
	object := s.store.get(t.Resource, key(t.Namespace, t.name))
	if object == nil {
		return nil, apierrors.NewNotFound(t.Resource, t.name)
	}
	return object, nil
}

func (s *Server) create(t *target, body []byte) (runtime.Object, *apierrors.StatusError) {
	object, failure := decode(t.kind, body)
	if failure != nil {
		return nil, failure
	}
	m := access(object)
	if m.GetNamespace() == "" {
		m.SetNamespace(t.Namespace)
	}
	switch {
	case m.GetResourceVersion() != "":
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	case m.GetNamespace() != t.Namespace:
		return nil, apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request")
	}
	if failure := s.admitCreate(t.kind, object); failure != nil {
		return nil, failure
	}
	if t.Resource.Resource == "events" && s.store.get(t.Resource, keyOf(object)) != nil {
		// Clients name Events after the nanosecond, which does not change within an instant of virtual time.
		m.SetName(m.GetName() + "." + strconv.FormatInt(s.store.revision, 10))
	}
	if s.store.get(t.Resource, keyOf(object)) != nil {
		return nil, apierrors.NewAlreadyExists(t.Resource, m.GetName())
	}
	if t.dryRun() {
		return object, nil
	}
	return s.store.write(watch.Added, t.Resource, object), nil
}

func (s *Server) update(t *target, body []byte) (runtime.Object, *apierrors.StatusError) {
	object, failure := decode(t.kind, body)
	if failure != nil {
		return nil, failure
	}
	return s.replace(t, object)
}

// replace stores a new state of an existing object.
func (s *Server) replace(t *target, object runtime.Object) (runtime.Object, *apierrors.StatusError) {
	old, failure := s.existing(t)
	if failure != nil {
		return nil, failure
	}
	m, was := access(object), access(old)
	if m.GetNamespace() == "" {
		m.SetNamespace(t.Namespace)
	}
	switch {
	case m.GetName() != t.name || m.GetNamespace() != t.Namespace:
		return nil, apierrors.NewBadRequest("the name or namespace of the object does not match that of the URL")
	case m.GetUID() != "" && m.GetUID() != was.GetUID():
		return nil, apierrors.NewConflict(t.Resource, t.name,
			fmt.Errorf("precondition failed: UID in precondition: %s, UID in object meta: %s", m.GetUID(),
				was.GetUID()))
	case m.GetResourceVersion() == "" && t.kind.custom():
		// metadata.resourceVersion: must be specified for an update
		return nil, apierrors.NewInvalid(t.kind.GroupKind(), t.name, nil)
	case m.GetResourceVersion() != "" && m.GetResourceVersion() != was.GetResourceVersion():
		return nil, apierrors.NewConflict(t.Resource, t.name,
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if object, failure = s.admitUpdate(t, old, object); failure != nil {
		return nil, failure
	}
	if reflect.DeepEqual(old, object) || t.dryRun() {
		return object, nil
	}
	if access(object).GetDeletionTimestamp() != nil && len(access(object).GetFinalizers()) == 0 {
		return s.remove(t.Resource, object), nil
	}
	if t.Resource == definitions.GroupResource() {
		// Resources of the former definition are no longer served.
		s.store.end(schema.ParseGroupResource(t.name))
	}
	return s.store.write(watch.Modified, t.Resource, object), nil
}

func (s *Server) delete(t *target, body []byte) (runtime.Object, *apierrors.StatusError) {
	old, failure := s.existing(t)
	if failure != nil {
		return nil, failure
	}
	options, failure := deleteOptions(body)
	if failure != nil {
		return nil, failure
	}
	if wanted := options.Preconditions; wanted != nil {
		was := access(old)
		if wanted.UID != nil && *wanted.UID != was.GetUID() {
			return nil, apierrors.NewConflict(t.Resource, t.name,
				fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *wanted.UID, was.GetUID()))
		}
		if wanted.ResourceVersion != nil && *wanted.ResourceVersion != was.GetResourceVersion() {
			return nil, apierrors.NewConflict(t.Resource, t.name,
				fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *wanted.ResourceVersion, was.GetResourceVersion()))
		}
	}
	if len(options.DryRun) > 0 || t.dryRun() {
		return old, nil
	}
	return s.terminate(t.Resource, old, options), nil
}

// deleteOptions decodes the body of a deletion, which may have any API group.
func deleteOptions(body []byte) (options metav1.DeleteOptions, failure *apierrors.StatusError) {
	err := json.Unmarshal(body, &options)
	if len(body) > 0 && body[0] != '{' {
		_, _, err = codecs.UniversalDeserializer().Decode(body, nil, &options)
	}
	if err != nil && len(body) > 0 {
		failure = apierrors.NewBadRequest(err.Error())
	}
	return options, failure
}

// deleteCollection deletes the objects that a list with the same selectors returns.
func (s *Server) deleteCollection(t *target, body []byte) *apierrors.StatusError {
	matches, failure := t.selector()
	if failure != nil {
		return failure
	}
	options, failure := deleteOptions(body)
	if failure != nil {
		return failure
	}
	objects := s.store.objects[t.Resource]
	for _, each := range slices.Sorted(maps.Keys(objects)) {
		if object := objects[each]; matches(object) {
			s.terminate(t.Resource, object, options)
		}
	}
	return nil
}

// list returns the objects at a revision: the current one, or the revision of the first page.
func (s *Server) list(req *http.Request, t *target) *http.Response {
	revision, from := s.store.revision, ""
	if token := t.query.Get("continue"); token != "" {
		number, after, _ := strings.Cut(token, " ")
		revision, _ = strconv.ParseInt(number, 10, 64)
		if from = after; revision < s.store.compacted {
			return refuse(req, apierrors.NewResourceExpired("The provided continue parameter is too old"))
		}
	}
	matches, failure := t.selector()
	if failure != nil {
		return refuse(req, failure)
	}
	objects := s.store.at(t.Resource, revision)
	var found []runtime.Object
	for _, each := range slices.Sorted(maps.Keys(objects)) {
		if each > from && matches(objects[each]) {
			found = append(found, objects[each])
		}
	}
	var next string
	if limit, err := strconv.Atoi(t.query.Get("limit")); err == nil && limit > 0 && len(found) > limit {
		found = found[:limit]
		next = fmt.Sprintf("%d %s", revision, keyOf(found[limit-1]))
	}
	return respond(req, http.StatusOK, t.format.contentType(), t.format.list(found, revision, next))
}

// selector returns a function that reports whether the request selects an object.
func (t *target) selector() (func(runtime.Object) bool, *apierrors.StatusError) {
	byLabel, err1 := labels.Parse(t.query.Get("labelSelector"))
	byField, err2 := fields.ParseSelector(t.query.Get("fieldSelector"))
	if err := errors.Join(err1, err2); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	name := t.name // most field selectors select a name
	if one, found := byField.RequiresExactMatch("metadata.name"); found && name == "" {
		name = one
	}
	return func(object runtime.Object) bool {
		m := access(object)
		return (t.Namespace == "" || m.GetNamespace() == t.Namespace) && (name == "" || m.GetName() == name) &&
			byLabel.Matches(labels.Set(m.GetLabels())) && (byField.Empty() || byField.Matches(fields.Set{
			"metadata.name": m.GetName(), "metadata.namespace": m.GetNamespace(),
		}))
	}, nil
}

// now is the current time in the precision of objects.
func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }
