// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// document returns what a path tells of the server and its resources, nil if that is no such path. The lock is held.
func (s *Server) document(path string) any {
	if path == "/version" {
		return version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"}
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case len(parts) == 2 && parts[0] == "api":
		return s.resources(schema.GroupVersion{Version: parts[1]})
	case path == "/apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
		for _, each := range s.groups() {
			list.Groups = append(list.Groups, *each)
		}
		return list
	case len(parts) == 2 && parts[0] == "apis":
		for _, each := range s.groups() {
			if each.Name == parts[1] {
				return each
			}
		}
	case len(parts) == 3 && parts[0] == "apis":
		return s.resources(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	case path == "/openapi/v3":
		paths := map[string]any{}
		for _, each := range s.served() {
			under := cmp.Or(strings.TrimSuffix("apis/"+each.Group, "apis/"), "api") + "/" + each.Version
			paths[under] = map[string]string{"serverRelativeURL": "/openapi/v3/" + under}
		}
		return map[string]any{"paths": paths}
	case len(parts) == 4 && parts[0] == "openapi":
		return s.openAPI(schema.GroupVersion{Version: parts[3]})
	case len(parts) == 5 && parts[0] == "openapi":
		return s.openAPI(schema.GroupVersion{Group: parts[3], Version: parts[4]})
	}
	return nil
}

// served are all resources in all versions, in an order that depends on nothing else. The newest version comes first.
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

// groups are those of APIs, but for the one that has no name.
func (s *Server) groups() (groups []*metav1.APIGroup) {
	for _, each := range s.served() {
		if each.Group == "" {
			continue
		}
		served := metav1.GroupVersionForDiscovery{GroupVersion: each.GroupVersion().String(), Version: each.Version}
		if last := len(groups) - 1; last < 0 || groups[last].Name != each.Group {
			groups = append(groups, &metav1.APIGroup{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: each.Group, PreferredVersion: served,
			})
		}
		group := groups[len(groups)-1]
		if !slices.Contains(group.Versions, served) {
			group.Versions = append(group.Versions, served)
		}
	}
	return groups
}

// categoryAll are the resources that `kubectl get all` shows.
const categoryAll = " pods services deployments statefulsets "

// resources lists those of a version of a group, nil if it is not served.
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
			ShortNames: each.short,
			Verbs:      metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		}
		if strings.Contains(categoryAll, " "+each.resource+" ") {
			resource.Categories = []string{"all"}
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

// openAPI describes a version of a group, nil if it is not served: that each kind can be patched and that fieldValidation
// is known, which is what kubectl asks before it applies an object. It has no schemas.
func (s *Server) openAPI(version schema.GroupVersion) any {
	type object = map[string]any
	paths := object{}
	for _, each := range s.served() {
		if each.GroupVersion() == version {
			paths["/"+each.resource+"/{name}"] = object{"patch": object{
				"parameters": []object{{"name": "fieldValidation", "in": "query"}},
				"responses":  object{},
				"x-kubernetes-group-version-kind": object{
					"group": each.Group, "version": each.Version, "kind": each.Kind,
				},
			}}
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return object{"openapi": "3.0.0", "info": object{"title": "Kubernetes", "version": "v1.36.3"}, "paths": paths}
}
