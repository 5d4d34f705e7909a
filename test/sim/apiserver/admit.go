// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"reflect"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// begin creates the objects that every cluster has.
func (s *Server) begin() {
	cidr := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}}
	for _, each := range s.options.ServiceCIDRs {
		cidr.Spec.CIDRs = append(cidr.Spec.CIDRs, each.String())
	}
	for _, name := range []string{"default", "kube-system"} {
		s.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, corev1.SchemeGroupVersion.WithResource("namespaces"))
	}
	s.put(cidr, networkingv1.SchemeGroupVersion.WithResource("servicecidrs"))
}

func (s *Server) put(object runtime.Object, resource schema.GroupVersionResource) {
	k := builtIn[resource]
	object.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	if failure := s.admitCreate(k, object); failure != nil {
		panic(failure)
	}
	s.store.write(watch.Added, k.groupResource(), object)
}

// empty returns an empty object of the kind.
func (k *kind) empty() runtime.Object {
	var object runtime.Object = &unstructured.Unstructured{Object: map[string]any{}}
	if !k.custom() && k.Group != definitions.Group {
		object = need(scheme.Scheme.New(k.GroupVersionKind))
	}
	object.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	return object
}

// admitCreate sets the fields that the server sets on a new object, or refuses the object.
func (s *Server) admitCreate(k *kind, object runtime.Object) *apierrors.StatusError {
	m := access(object)
	if k.namespaced {
		namespace, _ := s.store.get(namespaces, m.GetNamespace()).(*corev1.Namespace)
		switch {
		case namespace == nil:
			return apierrors.NewNotFound(namespaces, m.GetNamespace())
		case namespace.DeletionTimestamp != nil:
			failure := apierrors.NewForbidden(k.groupResource(), m.GetName(),
				fmt.Errorf("unable to create new content in namespace %s because it is being terminated",
					namespace.Name))
			failure.ErrStatus.Details.Causes = append(failure.ErrStatus.Details.Causes, metav1.StatusCause{
				Type:    corev1.NamespaceTerminatingCause,
				Message: fmt.Sprintf("namespace %s is being terminated", namespace.Name), Field: "metadata.namespace",
			})
			return failure
		}
	}
	if m.GetName() == "" && m.GetGenerateName() != "" {
		s.names++
		m.SetName(m.GetGenerateName() + fmt.Sprintf("%05s", strconv.FormatInt(int64(s.names), 36)))
	}
	if failure := validate(k, object); failure != nil {
		return failure
	}
	m.SetUID(types.UID(fmt.Sprintf("%s-%d", s.options.Name, s.store.revision+1)))
	m.SetCreationTimestamp(now())
	m.SetDeletionTimestamp(nil)
	if k.generations {
		m.SetGeneration(1)
	}
	switch object := object.(type) {
	case *corev1.Service:
		return s.admitService(object, nil)
	case *corev1.Namespace:
		object.Status.Phase = corev1.NamespaceActive
		metav1.SetMetaDataLabel(&object.ObjectMeta, corev1.LabelMetadataName, object.Name)
	case *corev1.Pod:
		object.Status = corev1.PodStatus{Phase: corev1.PodPending}
	case *appsv1.Deployment:
		object.Status = appsv1.DeploymentStatus{}
		defaultReplicas(&object.Spec.Replicas)
	case *appsv1.StatefulSet:
		object.Status = appsv1.StatefulSetStatus{}
		defaultReplicas(&object.Spec.Replicas)
	case *discoveryv1.EndpointSlice:
		admitSlice(object)
	case *unstructured.Unstructured:
		if k.custom() && k.status {
			delete(object.Object, "status")
		}
		if k.Group == definitions.Group {
			object.Object["status"] = map[string]any{
				"conditions": []any{map[string]any{"type": "Established", "status": "True"}},
			}
		}
	}
	return nil
}

// admitUpdate returns the object that an update stores: fields that the endpoint does not write, and fields that the
// server controls, keep their values.
func (s *Server) admitUpdate(t *target, old, object runtime.Object) (runtime.Object, *apierrors.StatusError) {
	if t.kind.status {
		object = withStatus(t.Subresource == "status", old, object)
	}
	m, was := access(object), access(old)
	m.SetUID(was.GetUID())
	m.SetCreationTimestamp(was.GetCreationTimestamp())
	m.SetDeletionTimestamp(was.GetDeletionTimestamp())
	m.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	m.SetResourceVersion(was.GetResourceVersion())
	m.SetGenerateName(was.GetGenerateName())
	m.SetGeneration(was.GetGeneration())
	m.SetSelfLink("")
	if failure := validate(t.kind, object); failure != nil {
		return nil, failure
	}
	switch object := object.(type) {
	case *corev1.Service:
		if failure := s.admitService(object, old.(*corev1.Service)); failure != nil {
			return nil, failure
		}
	case *corev1.Namespace:
		metav1.SetMetaDataLabel(&object.ObjectMeta, corev1.LabelMetadataName, object.Name)
	case *discoveryv1.EndpointSlice:
		admitSlice(object)
		if object.AddressType != old.(*discoveryv1.EndpointSlice).AddressType {
			return nil, apierrors.NewInvalid(t.kind.GroupKind(), object.Name, field.ErrorList{
				field.Invalid(field.NewPath("addressType"), object.AddressType, "field is immutable"),
			})
		}
	}
	if t.kind.generations && desiredDiffers(t.kind, old, object) {
		m.SetGeneration(was.GetGeneration() + 1)
	}
	return object, nil
}

// withStatus combines the fields that an update of the object, or of its status, writes with the fields that it does not.
func withStatus(status bool, old, object runtime.Object) runtime.Object {
	from, to := object, old.DeepCopyObject()
	if !status {
		from, to = old, object
	}
	switch to := to.(type) {
	case *unstructured.Unstructured:
		value, exists := from.DeepCopyObject().(*unstructured.Unstructured).Object["status"]
		if !exists {
			delete(to.Object, "status")
			break
		}
		to.Object["status"] = value
	default:
		of := func(typed runtime.Object) reflect.Value { return reflect.ValueOf(typed).Elem().FieldByName("Status") }
		of(to).Set(of(from))
	}
	if status {
		access(to).SetResourceVersion(access(object).GetResourceVersion())
		if _, custom := to.(*unstructured.Unstructured); !custom {
			access(to).SetLabels(access(object).GetLabels())
			access(to).SetAnnotations(access(object).GetAnnotations())
		}
	}
	return to
}

// desiredDiffers reports whether more than metadata and status differ.
func desiredDiffers(k *kind, old, object runtime.Object) bool {
	switch object := object.(type) {
	case *unstructured.Unstructured:
		of := func(u runtime.Object) map[string]any {
			content := map[string]any{}
			for key, value := range u.(*unstructured.Unstructured).Object {
				if key != "metadata" && (key != "status" || !k.status) {
					content[key] = value
				}
			}
			return content
		}
		return !reflect.DeepEqual(of(old), of(object))
	case *discoveryv1.EndpointSlice:
		was := old.(*discoveryv1.EndpointSlice)
		return !reflect.DeepEqual(was.Endpoints, object.Endpoints) || !reflect.DeepEqual(was.Ports, object.Ports) ||
			!reflect.DeepEqual(was.Labels, object.Labels) || !reflect.DeepEqual(was.Annotations, object.Annotations)
	default:
		of := func(typed runtime.Object) any { return reflect.ValueOf(typed).Elem().FieldByName("Spec").Interface() }
		return !reflect.DeepEqual(of(old), of(object))
	}
}

// validate refuses metadata that every API server refuses.
func validate(k *kind, object runtime.Object) *apierrors.StatusError {
	m := access(object)
	names := validation.NameIsDNSSubdomain
	switch k.resource {
	case "namespaces":
		names = validation.ValidateNamespaceName
	case "services":
		names = validation.NameIsDNS1035Label
	case "roles", "rolebindings", "clusterroles", "clusterrolebindings":
		names = func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	}
	problems := validation.ValidateObjectMetaAccessor(m, k.namespaced, names, field.NewPath("metadata"))
	problems = append(problems, metavalidation.ValidateLabels(m.GetLabels(), field.NewPath("metadata", "labels"))...)
	if service, ok := object.(*corev1.Service); ok {
		problems = append(problems, validateService(service)...)
	}
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewInvalid(k.GroupKind(), m.GetName(), problems)
}

// defaultReplicas sets the default of one pod per workload.
func defaultReplicas(replicas **int32) {
	if *replicas == nil {
		*replicas = new(int32(1))
	}
}

func admitSlice(slice *discoveryv1.EndpointSlice) {
	for i := range slice.Ports {
		port := &slice.Ports[i]
		if port.Name == nil {
			port.Name = new(string)
		}
		if port.Protocol == nil {
			port.Protocol = new(corev1.ProtocolTCP)
		}
	}
}
