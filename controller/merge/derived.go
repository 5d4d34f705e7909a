// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// derivedService returns the Service behind an import: without a selector, with the import's ports, policies and IPs,
// if any. It is nil if the import needs none or can have none.
func derivedService(observed Observed, agreed Decision, imported *v1beta1.ServiceImport) *corev1.Service {
	existing, spec := observed.DerivedService, imported.Spec
	// Without an export nothing changes its spec, and an older schema of the import may have dropped fields.
	stays := agreed.spec == nil && existing != nil && export.IsManaged(existing)
	if spec.Type != v1beta1.ClusterSetIP || len(spec.IPFamilies) == 0 && !stays || foreignService(observed) || observed.NoIP != "" {
		return nil
	}
	service := ownService(observed, existing, export.DerivedServiceName(observed.Service), export.LabelService, importOwner(observed))
	if stays {
		return service
	}
	service.Spec = corev1.ServiceSpec{
		Type:                  corev1.ServiceTypeClusterIP,
		Ports:                 make([]corev1.ServicePort, 0, len(spec.Ports)),
		ClusterIPs:            slices.Clone(spec.IPs),
		IPFamilies:            slices.Clone(spec.IPFamilies),
		IPFamilyPolicy:        policyOf(spec.IPFamilies),
		SessionAffinity:       spec.SessionAffinity,
		SessionAffinityConfig: spec.SessionAffinityConfig,
		InternalTrafficPolicy: spec.InternalTrafficPolicy,
		TrafficDistribution:   knownDistribution(spec.TrafficDistribution),
	}
	if len(spec.IPs) > 0 {
		service.Spec.ClusterIP = spec.IPs[0]
	}
	if service.Spec.TrafficDistribution == nil && agreed.Placement.Hinted() {
		// Most data planes know this value.
		service.Spec.TrafficDistribution = ptr.To(corev1.ServiceTrafficDistributionPreferClose)
	}
	for _, port := range spec.Ports {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name:        port.Name,
			Protocol:    port.Protocol,
			AppProtocol: port.AppProtocol,
			Port:        port.Port,
			TargetPort:  intstr.FromInt32(port.Port),
		})
	}
	return service
}

// policyOf returns the policy by which a Service has exactly these families: with PreferDualStack, the API server may add one.
func policyOf(families []corev1.IPFamily) *corev1.IPFamilyPolicy {
	if len(families) > 1 {
		return ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	}
	return ptr.To(corev1.IPFamilyPolicySingleStack)
}

// ownService returns a copy of an existing Service, or a new one for nil, with a name, an owner, the managed-by label,
// and label set to the multi-cluster service.
func ownService(observed Observed, existing *corev1.Service, name, label string, owner metav1.OwnerReference) *corev1.Service {
	service := &corev1.Service{}
	if existing != nil {
		service = existing.DeepCopy()
	}
	service.Namespace, service.Name = observed.Service.Namespace, name
	export.Mark(service)
	service.Labels[label] = observed.Service.Name
	service.OwnerReferences = []metav1.OwnerReference{owner}
	return service
}

// foreignService reports whether a Service of another owner, or with a label of another import, has the name of the derived
// one and is not adopted with the import.
func foreignService(observed Observed) bool {
	derived := observed.DerivedService
	switch {
	case derived == nil:
		return false
	case export.IsManaged(derived):
		return export.ServiceOf(derived) != observed.Service
	}
	return !Adopted(observed.ServiceImport)
}

// knownDistribution returns the value that a derived Service has for the requested one, nil for none: the API server refuses
// a Service with a value that it does not know.
func knownDistribution(value *string) *string {
	switch ptr.Deref(value, "") {
	case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone,
		corev1.ServiceTrafficDistributionPreferSameNode:
		return value
	}
	return nil
}

// NeedsRecreation reports whether the existing Service must be deleted and created again, because the first IP family or
// the cluster IP, which are immutable, differ. Create the desired Service without UID and resourceVersion; its clusterIPs
// request the IPs.
func NeedsRecreation(existing, desired *corev1.Service) bool {
	if len(existing.Spec.IPFamilies) > 0 && len(desired.Spec.IPFamilies) > 0 &&
		existing.Spec.IPFamilies[0] != desired.Spec.IPFamilies[0] {
		return true
	}
	return existing.Spec.ClusterIP != "" && existing.Spec.ClusterIP != desired.Spec.ClusterIP
}

// firstOf returns the first IP of each family, in the order of the families.
func firstOf(families []corev1.IPFamily, all []string) (ips []string) {
	for _, family := range families {
		if i := slices.IndexFunc(all, func(ip string) bool { return export.FamilyOf(ip) == family }); i >= 0 {
			ips = append(ips, all[i])
		}
	}
	return ips
}

// knownIPs returns the IPs of the derived Service, then the IPs of the import, so that IPs survive the Service.
func knownIPs(observed Observed) []string {
	var ips []string
	if derived := observed.DerivedService; derived != nil && !foreignService(observed) {
		ips = append(ips, derived.Spec.ClusterIPs...)
	}
	// An adopted import keeps its IPs, unless a Service in another namespace has them.
	if imported := observed.ServiceImport; imported != nil {
		ips = append(ips, imported.Spec.IPs...)
	}
	return slices.DeleteFunc(ips, func(ip string) bool {
		return export.FamilyOf(ip) == "" || slices.Contains(observed.TakenIPs, ip)
	})
}

// nodePorts returns the Service that provides node ports for an exported Service. It has the same pods, ports and families, and
// each node serves only its own pods. It is nil if none is needed, or if a Service of another owner has its name.
func nodePorts(observed Observed) *corev1.Service {
	of, existing := observed.NodePortsFor, observed.NodePorts
	if of == nil || existing != nil && !export.IsManaged(existing) {
		return nil
	}
	service := ownService(observed, existing, export.NodePortServiceName(observed.Service), export.LabelExposed, exportOwner(observed))
	before := service.Spec.Ports
	service.Spec.Type = corev1.ServiceTypeNodePort
	service.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	service.Spec.Selector = of.Spec.Selector
	// Clients come with the addresses of their nodes, so that affinity is by node.
	service.Spec.SessionAffinity, service.Spec.SessionAffinityConfig = of.Spec.SessionAffinity, of.Spec.SessionAffinityConfig
	service.Spec.PublishNotReadyAddresses = of.Spec.PublishNotReadyAddresses
	service.Spec.IPFamilies, service.Spec.IPFamilyPolicy = of.Spec.IPFamilies, policyOf(of.Spec.IPFamilies)
	service.Spec.Ports = slices.Clone(of.Spec.Ports)
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		port.NodePort = 0
		at := slices.IndexFunc(before, func(b corev1.ServicePort) bool {
			return b.Port == port.Port && b.Protocol == port.Protocol
		})
		if at >= 0 {
			port.NodePort = before[at].NodePort
		}
	}
	return service
}
