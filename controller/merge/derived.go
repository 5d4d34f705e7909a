// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// derivedService is the Service behind an import: without a selector, with
// the import's ports and policies, and with its IPs if it has some. It is nil if
// the import needs none or can have none.
func derivedService(observed Observed, imported *v1beta1.ServiceImport) *corev1.Service {
	existing := observed.DerivedService
	families := importFamilies(observed, imported)
	if imported.Spec.Type != v1beta1.ClusterSetIP || len(families) == 0 || nameTaken(observed) || observed.NoIP != "" {
		return nil
	}
	service := &corev1.Service{}
	if existing != nil {
		service = existing.DeepCopy()
	}
	service.Namespace, service.Name = observed.Service.Namespace, export.DerivedServiceName(observed.Service)
	if service.Labels == nil {
		service.Labels = make(map[string]string)
	}
	service.Labels[export.LabelManagedBy] = export.Manager
	service.Labels[export.LabelService] = observed.Service.Name
	service.OwnerReferences = withOwner(service.OwnerReferences, importOwner(observed))

	spec := imported.Spec
	service.Spec = corev1.ServiceSpec{
		Type:                  corev1.ServiceTypeClusterIP,
		Ports:                 make([]corev1.ServicePort, 0, len(spec.Ports)),
		ClusterIPs:            slices.Clone(spec.IPs),
		IPFamilies:            families,
		IPFamilyPolicy:        ptr.To(corev1.IPFamilyPolicySingleStack),
		SessionAffinity:       spec.SessionAffinity,
		SessionAffinityConfig: derivedAffinity(spec),
		InternalTrafficPolicy: ptr.To(ptr.Deref(spec.InternalTrafficPolicy,
			corev1.ServiceInternalTrafficPolicyCluster)),
		TrafficDistribution: derivedDistribution(observed.Unsupported, spec.TrafficDistribution),
	}
	if service.Spec.SessionAffinity == "" {
		service.Spec.SessionAffinity = corev1.ServiceAffinityNone
	}
	if len(spec.IPs) > 0 {
		service.Spec.ClusterIP = spec.IPs[0]
	}
	if len(families) > 1 {
		service.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	}
	for _, port := range spec.Ports {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name:        port.Name,
			Protocol:    cmp.Or(port.Protocol, corev1.ProtocolTCP),
			AppProtocol: port.AppProtocol,
			Port:        port.Port,
			TargetPort:  intstr.FromInt32(port.Port),
		})
	}
	return service
}

// foreignService reports whether a Service that this controller did not make
// has the name of the derived one, and is not to be adopted with the import. It
// is only with one that is this controller's by now: where nothing is exported
// an import stays another's, also while it is served as a person's.
func foreignService(observed Observed) bool {
	derived, imported := observed.DerivedService, observed.ServiceImport
	if derived == nil || export.IsManaged(derived) {
		return false
	}
	other := export.DerivedFor(derived)
	return foreign(imported) || !Adopted(imported) || other != "" && other != observed.Service.Name
}

// nameTaken reports whether the derived Service's name belongs to a Service
// that is not, or will not be, this service's.
func nameTaken(observed Observed) bool { return foreignService(observed) || rival(observed) != "" }

// rival is the name of the other service of the namespace to which the name of
// the derived Service belongs, empty if there is none. A Service of this
// controller belongs to the service that it is labelled with. While there is no
// Service the name belongs to an import that states it; if several do, because
// the controller created them at the same time, to the oldest.
func rival(observed Observed) string {
	own := observed.Service.Name
	if derived := observed.DerivedService; derived != nil {
		if other := export.DerivedFor(derived); other != own && export.IsManaged(derived) {
			return other
		}
		return ""
	}
	var first *v1beta1.ServiceImport
	if states(observed.ServiceImport) {
		first = observed.ServiceImport
	}
	for _, namesake := range observed.Namesakes {
		if states(namesake) && (first == nil || olderImport(namesake, first)) {
			first = namesake
		}
	}
	if first == nil || first.Name == own {
		return ""
	}
	return first.Name
}

// states reports whether an import states the name of its derived Service, as
// those do that have or may create one.
func states(imported *v1beta1.ServiceImport) bool {
	return imported != nil && imported.DeletionTimestamp == nil &&
		imported.Annotations[export.AnnotationDerivedService] == export.DerivedServiceName(
			types.NamespacedName{Namespace: imported.Namespace, Name: imported.Name})
}

// olderImport orders imports by age, those of the same second by name.
func olderImport(a, b *v1beta1.ServiceImport) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

// importFamilies are the families of an import, in a new list. One that has
// none, of an older API or written by a person, has those of its IPs or else
// the first that this cluster can have. An import made of exports has none
// only where there is none in common, so that it gets none.
func importFamilies(observed Observed, imported *v1beta1.ServiceImport) []corev1.IPFamily {
	if len(imported.Spec.IPFamilies) > 0 {
		return slices.Clone(imported.Spec.IPFamilies)
	}
	var families []corev1.IPFamily
	for _, ip := range imported.Spec.IPs {
		if family := familyOf(ip); family != "" && !slices.Contains(families, family) {
			families = append(families, family)
		}
	}
	if len(families) == 0 && !export.IsManaged(imported) && len(observed.IPFamilies) > 0 {
		families = []corev1.IPFamily{observed.IPFamilies[0]}
	}
	return families
}

// derivedAffinity sets what the API server would set, so that a comparison
// with what it returns finds no difference.
func derivedAffinity(spec v1beta1.ServiceImportSpec) *corev1.SessionAffinityConfig {
	if spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return nil
	}
	if spec.SessionAffinityConfig != nil && spec.SessionAffinityConfig.ClientIP != nil &&
		spec.SessionAffinityConfig.ClientIP.TimeoutSeconds != nil {
		return spec.SessionAffinityConfig.DeepCopy()
	}
	return &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(
		corev1.DefaultClientIPServiceAffinitySeconds)}}
}

// NeedsRecreation reports whether the API server would refuse to make the
// existing Service into the desired one, because of the immutable first IP
// family or cluster IP, so that it must be deleted and created anew. The
// desired one then is to be created without UID and resourceVersion; its
// clusterIPs are those to ask for.
func NeedsRecreation(existing, desired *corev1.Service) bool {
	if len(existing.Spec.IPFamilies) > 0 && len(desired.Spec.IPFamilies) > 0 &&
		existing.Spec.IPFamilies[0] != desired.Spec.IPFamilies[0] {
		return true
	}
	return existing.Spec.ClusterIP != "" && existing.Spec.ClusterIP != desired.Spec.ClusterIP
}

// clusterIPs are the IPs of an import with these families, in their order: for
// each family that of the derived Service, or, where there is none, that which
// the import had, so that it survives the Service. They end where one is not
// known, because a second IP cannot be asked for without a first.
func clusterIPs(observed Observed, families []corev1.IPFamily) []string {
	var ips []string
	known := knownIPs(observed)
	for _, family := range families {
		i := slices.IndexFunc(known, func(ip string) bool { return familyOf(ip) == family })
		if i < 0 {
			break
		}
		ips = append(ips, known[i])
	}
	return ips
}

// firstFamily is the family that the IPs of the import begin with, empty where
// it has none.
func firstFamily(observed Observed) corev1.IPFamily {
	if known := knownIPs(observed); len(known) > 0 {
		return familyOf(known[0])
	}
	return ""
}

// knownIPs are those of the derived Service, then those of the import. There are
// none if the Service is another service's: two names never share an IP.
func knownIPs(observed Observed) []string {
	if rival(observed) != "" {
		return nil
	}
	var ips []string
	if derived := observed.DerivedService; derived != nil && !foreignService(observed) {
		ips = append(ips, derived.Spec.ClusterIPs...)
	}
	// The IPs of an import that a person wrote are known where they were
	// written here.
	if imported := observed.ServiceImport; imported != nil && (export.IsManaged(imported) || Adopted(imported) ||
		imported.Annotations[export.AnnotationDerivedService] != "") {
		ips = append(ips, imported.Spec.IPs...)
	}
	return slices.DeleteFunc(ips, func(ip string) bool {
		return familyOf(ip) == "" || slices.Contains(observed.TakenIPs, ip)
	})
}

// hasAll reports whether a Service has an IP of each family.
func hasAll(service *corev1.Service, families []corev1.IPFamily) bool {
	return service != nil && !slices.ContainsFunc(families, func(family corev1.IPFamily) bool {
		return !slices.ContainsFunc(service.Spec.ClusterIPs, func(ip string) bool { return familyOf(ip) == family })
	})
}

// familyOf is the family of an IP, empty for what is none, such as "None".
func familyOf(ip string) corev1.IPFamily {
	address, err := netip.ParseAddr(ip)
	switch {
	case err != nil:
		return ""
	case address.Is4():
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}
