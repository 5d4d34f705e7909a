// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

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
