// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateService(service *corev1.Service) (problems field.ErrorList) {
	path := field.NewPath("spec", "ports")
	headless := service.Spec.ClusterIP == corev1.ClusterIPNone
	if len(service.Spec.Ports) == 0 && !headless && service.Spec.Type != corev1.ServiceTypeExternalName {
		problems = append(problems, field.Required(path, ""))
	}
	names := map[string]bool{}
	for i, port := range service.Spec.Ports {
		switch {
		case port.Name == "" && len(service.Spec.Ports) > 1:
			problems = append(problems, field.Required(path.Index(i).Child("name"), ""))
		case port.Name != "" && names[port.Name]:
			problems = append(problems, field.Duplicate(path.Index(i).Child("name"), port.Name))
		}
		names[port.Name] = true
	}
	return problems
}

// admitService sets a Service's defaults and allocates its cluster IPs.
func (s *Server) admitService(service, old *corev1.Service) *apierrors.StatusError {
	spec := &service.Spec
	if spec.Type == "" {
		spec.Type = corev1.ServiceTypeClusterIP
	}
	if spec.SessionAffinity == "" {
		spec.SessionAffinity = corev1.ServiceAffinityNone
	}
	if spec.SessionAffinity == corev1.ServiceAffinityClientIP && spec.SessionAffinityConfig == nil {
		spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(10800))}}
	}
	for i := range spec.Ports {
		port := &spec.Ports[i]
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
		if port.TargetPort.IntVal == 0 && port.TargetPort.StrVal == "" {
			port.TargetPort.IntVal = port.Port
		}
	}
	if spec.Type == corev1.ServiceTypeExternalName {
		spec.ClusterIP, spec.ClusterIPs, spec.IPFamilies, spec.IPFamilyPolicy = "", nil, nil, nil
		return nil
	}
	if spec.InternalTrafficPolicy == nil {
		spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
	}
	s.admitNodePorts(spec, old)
	return s.allocate(service, old)
}

// admitNodePorts allocates new node ports for a Service of type NodePort or LoadBalancer, and clears them for other types.
func (s *Server) admitNodePorts(spec *corev1.ServiceSpec, old *corev1.Service) {
	has := spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer
	if has && spec.ExternalTrafficPolicy == "" {
		spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	for i := range spec.Ports {
		port := &spec.Ports[i]
		switch {
		case !has && old != nil:
			port.NodePort = 0
		case has && port.NodePort == 0:
			if old != nil {
				for _, before := range old.Spec.Ports {
					if before.Port == port.Port && before.Protocol == port.Protocol {
						port.NodePort = before.NodePort
					}
				}
			}
			if port.NodePort == 0 {
				s.nodePorts++
				port.NodePort = 30000 + s.nodePorts
			}
		}
	}
}

// allocate sets the families and cluster IPs of a Service.
func (s *Server) allocate(service, old *corev1.Service) *apierrors.StatusError {
	spec := &service.Spec
	invalid := func(path *field.Path, value any, detail string) *apierrors.StatusError {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), service.Name,
			field.ErrorList{field.Invalid(path, value, detail)})
	}
	ips := field.NewPath("spec", "clusterIPs").Index(0)
	if old != nil && old.Spec.ClusterIP != "" {
		if spec.ClusterIP == "" && len(spec.ClusterIPs) == 0 {
			spec.ClusterIP, spec.ClusterIPs = old.Spec.ClusterIP, slices.Clone(old.Spec.ClusterIPs)
		}
		if spec.ClusterIP != old.Spec.ClusterIP {
			return invalid(ips, spec.ClusterIPs, "may not change once set")
		}
		if len(spec.IPFamilies) == 0 {
			spec.IPFamilies = slices.Clone(old.Spec.IPFamilies)
		}
		if spec.IPFamilyPolicy == nil {
			spec.IPFamilyPolicy = old.Spec.IPFamilyPolicy
		}
	}
	if len(spec.ClusterIPs) == 0 && spec.ClusterIP != "" {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
	// An administrator writes the endpoints of such a Service, of either family.
	selectorless := spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
	served := s.families()
	if spec.IPFamilyPolicy == nil {
		policy := corev1.IPFamilyPolicySingleStack
		if selectorless {
			policy = corev1.IPFamilyPolicyRequireDualStack
		}
		spec.IPFamilyPolicy = &policy
	}
	if *spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack && len(served) < 2 && !selectorless {
		return invalid(field.NewPath("spec", "ipFamilyPolicy"), *spec.IPFamilyPolicy, "this cluster is not configured for dual-stack services")
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = served[:1:1]
		if len(spec.ClusterIPs) > 0 {
			if address, err := netip.ParseAddr(spec.ClusterIPs[0]); err == nil {
				spec.IPFamilies = []corev1.IPFamily{familyOf(address)}
			}
		}
	}
	if *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack && len(spec.IPFamilies) == 1 &&
		(len(served) > 1 || selectorless) {
		spec.IPFamilies = append(spec.IPFamilies, corev1.IPv6Protocol)
	}
	if *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack && len(spec.IPFamilies) > 1 {
		spec.IPFamilies = spec.IPFamilies[:1]
	}
	if spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	if len(spec.ClusterIPs) > len(spec.IPFamilies) {
		spec.ClusterIPs = spec.ClusterIPs[:len(spec.IPFamilies)]
	}
	taken := s.taken(service)
	for i, family := range spec.IPFamilies {
		if i < len(spec.ClusterIPs) {
			address, err := netip.ParseAddr(spec.ClusterIPs[i])
			cidr := s.rangeOf(family)
			switch {
			case err != nil || !cidr.Contains(address):
				return invalid(ips, spec.ClusterIPs,
					fmt.Sprintf("failed to allocate IP %s: the provided network does not match the current range",
						spec.ClusterIPs[i]))
			case taken[address]:
				return invalid(ips, spec.ClusterIPs,
					fmt.Sprintf("failed to allocate IP %s: provided IP is already allocated", address))
			}
			continue
		}
		address, found := s.free(family, taken)
		if !found {
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP: range is full"))
		}
		spec.ClusterIPs = append(spec.ClusterIPs, address.String())
	}
	spec.ClusterIP = spec.ClusterIPs[0]
	return nil
}

func familyOf(address netip.Addr) corev1.IPFamily {
	if address.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

func (s *Server) families() (families []corev1.IPFamily) {
	for _, each := range s.options.ServiceCIDRs {
		families = append(families, familyOf(each.Addr()))
	}
	return families
}

func (s *Server) rangeOf(family corev1.IPFamily) netip.Prefix {
	for _, each := range s.options.ServiceCIDRs {
		if familyOf(each.Addr()) == family {
			return each
		}
	}
	return netip.Prefix{}
}

// taken returns the cluster IPs of all Services except one.
func (s *Server) taken(but *corev1.Service) map[netip.Addr]bool {
	taken := map[netip.Addr]bool{}
	for _, each := range s.store.objects[corev1.Resource("services")] {
		service, ok := each.(*corev1.Service)
		if !ok || service.Namespace == but.Namespace && service.Name == but.Name {
			continue
		}
		for _, ip := range service.Spec.ClusterIPs {
			if address, err := netip.ParseAddr(ip); err == nil {
				taken[address] = true
			}
		}
	}
	return taken
}

// free returns the lowest free address of a family. It skips the network address, and the last address of an IPv4
// range.
func (s *Server) free(family corev1.IPFamily, taken map[netip.Addr]bool) (netip.Addr, bool) {
	cidr := s.rangeOf(family)
	for address := cidr.Addr().Next(); cidr.Contains(address); address = address.Next() {
		if !taken[address] && (cidr.Contains(address.Next()) || !address.Is4()) {
			return address, true
		}
	}
	return netip.Addr{}, false
}
