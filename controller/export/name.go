// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// digestLength is the length of the digest in a slice's name: 100 bits, which makes collisions impractical.
const digestLength = 20

// DerivedPrefix begins the names of derived Services, and of Services with node ports.
const DerivedPrefix = "derived-"

// DerivedServiceName is the name of the Service behind a ServiceImport, the same as the reference implementation's:
// "derived-" and ten characters of a digest of namespace and name. It is a DNS label.
func DerivedServiceName(service types.NamespacedName) string {
	return DerivedPrefix + digest(service.Namespace + "/" + service.Name)[:10]
}

// NodePortServiceName is the name of the Service with node ports that the controller derives for an exported Service. It is
// longer than any DerivedServiceName, and its digest too long for two services to share it.
func NodePortServiceName(service types.NamespacedName) string {
	return DerivedPrefix + digest("node-ports/" + service.Namespace + "/" + service.Name)[:digestLength]
}

// ServiceOf returns the multi-cluster service that a label of a slice or a derived Service names. Its name is empty without
// such a label.
func ServiceOf(object metav1.Object) types.NamespacedName {
	labels := object.GetLabels()
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: cmp.Or(labels[LabelService], labels[LabelExposed])}
}

// IsExposed reports whether a slice or a Service is for clusters of other networks.
func IsExposed[T metav1.Object](object T) bool { return object.GetLabels()[LabelExposed] != "" }

// SliceName returns <service>-<cluster>-<digest>, the name of the EndpointSlice that the controller writes for a source
// slice of that name and address type: the published slice of a slice of the Service, or the copy of a published slice.
// The format is stable, because copies are found by name after an upgrade (FromSlices). Different arguments
// give different names, so that no cluster can choose the names of another's slices, and a new address type, which is
// immutable, makes a new object. source may be empty. With a cluster id and a service name of at most 63 characters
// each the name has at most 148 of 253 characters.
func SliceName(cluster string, service types.NamespacedName, source string,
	addressType discoveryv1.AddressType,
) string {
	key := strings.Join([]string{cluster, service.Namespace, service.Name, source, string(addressType)}, "/")
	return service.Name + "-" + cluster + "-" + digest(key)[:digestLength]
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return strings.ToLower(base32.HexEncoding.EncodeToString(sum[:]))
}

// IsManaged reports whether a ServiceImport, Service or EndpointSlice belongs to the controller, which changes and deletes
// no others.
func IsManaged(object metav1.Object) bool { return object.GetLabels()[managedBy(object)] == Manager }

// Mark gives a ServiceImport, Service or EndpointSlice the label of the controller.
func Mark(object metav1.Object) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[managedBy(object)] = Manager
	object.SetLabels(labels)
}

// managedBy returns the key of the managed-by label of an object.
func managedBy(object metav1.Object) string {
	if _, slice := object.(*discoveryv1.EndpointSlice); slice {
		return LabelSliceManagedBy
	}
	return LabelManagedBy
}
