// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// A kind is a resource that the server has.
type kind struct {
	schema.GroupVersionKind
	// resource is the plural name. It and the group identify the kind.
	resource string
	// namespaced reports whether objects are in namespaces.
	namespaced bool
	// status reports whether there is the subresource status.
	status bool
	// generations reports whether the generation counts changes of the desired state.
	generations bool
	// prune drops the fields that the schema of a version does not have, and returns the values that the schema
	// refuses. It is nil for built-in resources, whose Go types have the same effect.
	prune func(object map[string]any) field.ErrorList
}

func (k *kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.resource}
}

// subresources returns the subresources of the kind.
func (k *kind) subresources() (names []string) {
	if k.status {
		names = append(names, "status")
	}
	switch k.resource {
	case "deployments", "statefulsets":
		names = append(names, "scale")
	case "serviceaccounts":
		names = append(names, "token")
	}
	return names
}

// custom reports whether a CustomResourceDefinition defines the kind.
func (k *kind) custom() bool { return k.prune != nil }

// builtIn are the built-in resources, and CustomResourceDefinitions.
var builtIn = func() map[schema.GroupVersionResource]*kind {
	kinds := map[schema.GroupVersionResource]*kind{}
	core, apps, rbac := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, rbacv1.SchemeGroupVersion
	discovery, networking := discoveryv1.SchemeGroupVersion, networkingv1.SchemeGroupVersion
	admission := admissionregistrationv1.SchemeGroupVersion
	for _, each := range []kind{
		{GroupVersionKind: core.WithKind("Namespace"), resource: "namespaces", status: true},
		{GroupVersionKind: core.WithKind("Node"), resource: "nodes", status: true},
		{GroupVersionKind: core.WithKind("Pod"), resource: "pods", namespaced: true, status: true},
		{GroupVersionKind: core.WithKind("Service"), resource: "services", namespaced: true, status: true},
		{GroupVersionKind: core.WithKind("ServiceAccount"), resource: "serviceaccounts", namespaced: true},
		{GroupVersionKind: core.WithKind("Secret"), resource: "secrets", namespaced: true},
		{GroupVersionKind: core.WithKind("ConfigMap"), resource: "configmaps", namespaced: true},
		{GroupVersionKind: core.WithKind("Event"), resource: "events", namespaced: true},
		{
			GroupVersionKind: apps.WithKind("Deployment"), resource: "deployments", namespaced: true,
			status: true, generations: true,
		},
		{
			GroupVersionKind: apps.WithKind("StatefulSet"), resource: "statefulsets", namespaced: true,
			status: true, generations: true,
		},
		{
			GroupVersionKind: discovery.WithKind("EndpointSlice"), resource: "endpointslices", namespaced: true,
			generations: true,
		},
		{
			GroupVersionKind: coordinationv1.SchemeGroupVersion.WithKind("Lease"), resource: "leases", namespaced: true,
		},
		{GroupVersionKind: rbac.WithKind("ClusterRole"), resource: "clusterroles"},
		{GroupVersionKind: rbac.WithKind("ClusterRoleBinding"), resource: "clusterrolebindings"},
		{GroupVersionKind: rbac.WithKind("Role"), resource: "roles", namespaced: true},
		{GroupVersionKind: rbac.WithKind("RoleBinding"), resource: "rolebindings", namespaced: true},
		{GroupVersionKind: networking.WithKind("ServiceCIDR"), resource: "servicecidrs", status: true},
		// Policies are stored, but only real API servers enforce them.
		{
			GroupVersionKind: admission.WithKind("ValidatingAdmissionPolicy"), resource: "validatingadmissionpolicies",
			status: true, generations: true,
		},
		{GroupVersionKind: admission.WithKind("ValidatingAdmissionPolicyBinding"), resource: "validatingadmissionpolicybindings"},
		{
			GroupVersionKind: definitions.GroupVersion().WithKind("CustomResourceDefinition"),
			resource:         definitions.Resource, status: true, generations: true,
		},
	} {
		kinds[each.GroupVersion().WithResource(each.resource)] = &each
	}
	return kinds
}()

// definitions are the CustomResourceDefinitions.
var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

var codecs = serializer.NewCodecFactory(scheme.Scheme)

// kindOf returns the kind of a resource in a version, or nil if it is not served. The caller holds the lock.
func (s *Server) kindOf(resource schema.GroupVersionResource) *kind {
	if found := builtIn[resource]; found != nil {
		return found
	}
	definition, _ := s.store.get(definitions.GroupResource(),
		resource.GroupResource().String()).(*unstructured.Unstructured)
	if definition == nil {
		return nil
	}
	cached := s.kinds[resource]
	if cached.definition != definition {
		cached = customKind{definition, kindIn(definition, resource)}
		s.kinds[resource] = cached
	}
	return cached.kind
}

// customKind is the cached result of kindIn.
type customKind struct {
	definition *unstructured.Unstructured
	kind       *kind
}

// kindIn returns the kind that a CustomResourceDefinition defines in a version, or nil if it does not serve the version.
func kindIn(definition *unstructured.Unstructured, resource schema.GroupVersionResource) *kind {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(definition.Object, path...)
		return value
	}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, each := range versions {
		version, _ := each.(map[string]any)
		if version["name"] != resource.Version || version["served"] != true {
			continue
		}
		openAPI, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		_, status, _ := unstructured.NestedFieldNoCopy(version, "subresources", "status")
		return &kind{
			GroupVersionKind: resource.GroupVersion().WithKind(text("spec", "names", "kind")),
			resource:         resource.Resource,
			namespaced:       text("spec", "scope") == "Namespaced",
			status:           status,
			generations:      true,
			prune:            func(object map[string]any) field.ErrorList { return fit(openAPI, object, nil) },
		}
	}
	return nil
}

// fit drops the fields of an object that are not in a structural schema, except those that every object has; no schema
// here preserves unknown fields. It returns the lists that are longer than the schema allows.
func fit(openAPI map[string]any, value any, path *field.Path) (problems field.ErrorList) {
	switch value := value.(type) {
	case map[string]any:
		properties, _ := openAPI["properties"].(map[string]any)
		additional, _ := openAPI["additionalProperties"].(map[string]any)
		for key, each := range value {
			property, known := properties[key].(map[string]any)
			switch {
			case path == nil && slices.Contains([]string{"apiVersion", "kind", "metadata"}, key):
			case known:
				problems = append(problems, fit(property, each, path.Child(key))...)
			case additional != nil:
				problems = append(problems, fit(additional, each, path.Child(key))...)
			default:
				delete(value, key)
			}
		}
	case []any:
		if most, limited := openAPI["maxItems"].(int64); limited && int64(len(value)) > most {
			problems = append(problems, field.TooMany(path, len(value), int(most)))
		}
		items, _ := openAPI["items"].(map[string]any)
		for i, each := range value {
			problems = append(problems, fit(items, each, path.Index(i))...)
		}
	}
	return problems
}

// access returns the metadata of an object of the server, which every kind has.
func access(object runtime.Object) metav1.Object { return need(meta.Accessor(object)) }

func keyOf(object runtime.Object) string {
	m := access(object)
	return key(m.GetNamespace(), m.GetName())
}

func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
