// SPDX-License-Identifier: Apache-2.0

package export

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// digestLength is the length of the digest in a slice's name: 100 bits, so
// that no two names are equal by chance, nor by an effort that is worth it.
const digestLength = 20

// DerivedServiceName is the name of the Service behind a ServiceImport, the
// same as the reference implementation's: "derived-" and ten characters of a
// digest of namespace and name. It is a DNS label.
func DerivedServiceName(service types.NamespacedName) string {
	return "derived-" + digest(service.Namespace + "/" + service.Name)[:10]
}

// DerivedFor returns the name of the service that a Service is derived from: the
// label LabelService names it, or else the ServiceImport that owns the Service.
// A label or owner of which DerivedServiceName gives another name does not
// count; without one that counts the name is empty. A derived name has 50 bits
// of a digest, so that two services of a namespace can be made to share one:
// the name of a Service alone does not say which of them it belongs to.
func DerivedFor(derived *corev1.Service) string {
	named := func(service string) bool {
		return service != "" && DerivedServiceName(types.NamespacedName{
			Namespace: derived.Namespace,
			Name:      service,
		}) == derived.Name
	}
	if service := derived.Labels[LabelService]; named(service) {
		return service
	}
	for _, owner := range derived.OwnerReferences {
		if owner.Kind == v1beta1.ServiceImportKindName && named(owner.Name) {
			return owner.Name
		}
	}
	return ""
}

// IsDerivedFor reports whether this controller made a Service for the service of
// that name. One of which DerivedFor names no service counts: somebody else
// changed its labels.
func IsDerivedFor(derived *corev1.Service, service string) bool {
	of := DerivedFor(derived)
	return IsManaged(derived) && (of == "" || of == service)
}

// SliceName returns <service>-<cluster>-<digest>, the name of the EndpointSlice that
// the controller writes for a slice of that name and address type in that cluster:
// the published slice for one of the own Service, the copy for one that another
// cluster publishes. The format is stable: copies are found by it after an upgrade
// (liveness.Verdict.View). Different arguments give different names, so that no cluster can
// choose names to meet those of another, and a new address type, which is
// immutable, makes a new object. The name of source may be empty. With a
// cluster id and a service name of at most 63 characters each it has at most
// 148 of the 253 characters that the API allows.
func SliceName(cluster string, service types.NamespacedName, source string,
	addressType discoveryv1.AddressType,
) string {
	key := strings.Join([]string{cluster, service.Namespace, service.Name, source, string(addressType)}, "/")
	return service.Name + "-" + cluster + "-" + digest(key)[:digestLength]
}

// validName reports whether a Service can have the name. A label's value, which
// names the service of a slice, and the name of a ServiceExport may be more.
func validName(service string) bool { return len(validation.IsDNS1123Label(service)) == 0 }

var lowerBase32Hex = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return lowerBase32Hex.EncodeToString(sum[:])
}
