// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// document answers for paths that describe the server and its resources. The caller holds the lock.
func (s *Server) document(req *http.Request) *http.Response {
	path := req.URL.Path
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var document any
	switch {
	case path == "/api":
		document = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case len(parts) == 2 && parts[0] == "api":
		document = s.resources(schema.GroupVersion{Version: parts[1]})
	case path == "/apis":
		document = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: s.groups()}
	case len(parts) == 3 && parts[0] == "apis":
		document = s.resources(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	}
	if document == nil {
		return refuse(req, apierrors.NewGenericServerResponse(http.StatusNotFound, req.Method, schema.GroupResource{}, "",
			"404 page not found", 0, true))
	}
	return respond(req, http.StatusOK, jsonType, need(json.Marshal(document)))
}

// served returns all resources in all versions, in a fixed order, the newest version first.
func (s *Server) served() (kinds []*kind) {
	kinds = slices.Collect(maps.Values(builtIn))
	for _, each := range s.store.objects[definitions.GroupResource()] {
		definition := each.(*unstructured.Unstructured)
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		for _, each := range versions {
			name, _ := each.(map[string]any)["name"].(string)
			resource := schema.GroupVersionResource{Group: group, Version: name, Resource: plural}
			if found := s.kindOf(resource); found != nil {
				kinds = append(kinds, found)
			}
		}
	}
	slices.SortFunc(kinds, func(a, b *kind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), version.CompareKubeAwareVersionStrings(b.Version, a.Version),
			strings.Compare(a.resource, b.resource))
	})
	return kinds
}

// groups returns the API groups except the core group.
func (s *Server) groups() (groups []metav1.APIGroup) {
	for _, each := range s.served() {
		if each.Group == "" {
			continue
		}
		served := metav1.GroupVersionForDiscovery{GroupVersion: each.GroupVersion().String(), Version: each.Version}
		if last := len(groups) - 1; last < 0 || groups[last].Name != each.Group {
			groups = append(groups, metav1.APIGroup{Name: each.Group, PreferredVersion: served})
		}
		group := &groups[len(groups)-1]
		if !slices.Contains(group.Versions, served) {
			group.Versions = append(group.Versions, served)
		}
	}
	return groups
}

// resources returns the list of resources in a version of a group, or nil if it is not served.
func (s *Server) resources(version schema.GroupVersion) any {
	list := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: version.String(),
	}
	for _, each := range s.served() {
		if each.GroupVersion() != version {
			continue
		}
		resource := metav1.APIResource{
			Name: each.resource, SingularName: strings.ToLower(each.Kind), Namespaced: each.namespaced, Kind: each.Kind,
			Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		}
		list.APIResources = append(list.APIResources, resource)
		for _, name := range each.subresources() {
			sub := metav1.APIResource{
				Name: each.resource + "/" + name, Namespaced: each.namespaced, Kind: each.Kind,
				Verbs: metav1.Verbs{"get", "patch", "update"},
			}
			switch name {
			case "scale":
				sub.Group, sub.Version, sub.Kind = "autoscaling", "v1", "Scale"
			case "token":
				sub.Group, sub.Version, sub.Kind = "authentication.k8s.io", "v1", "TokenRequest"
				sub.Verbs = metav1.Verbs{"create"}
			}
			list.APIResources = append(list.APIResources, sub)
		}
	}
	if list.APIResources == nil {
		return nil
	}
	return list
}
