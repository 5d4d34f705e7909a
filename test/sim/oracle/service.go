// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// A Service is the state of one name in one cluster.
type Service struct {
	Name              string
	Present, Exported bool // whether the Service and the ServiceExport exist
	// Created is the creation time of the ServiceExport, in whole seconds.
	Created  time.Time
	Headless bool
	Ports    []Port
	// Affinity is the session affinity: None, or ClientIP with the API server's default timeout.
	Affinity            string
	Labels, Annotations map[string]string
	Endpoints           []Endpoint
}

// Clone returns a deep copy.
func (s Service) Clone() Service {
	s.Ports, s.Endpoints = slices.Clone(s.Ports), slices.Clone(s.Endpoints)
	s.Labels, s.Annotations = maps.Clone(s.Labels), maps.Clone(s.Annotations)
	return s
}

// Shared reports whether the service exists and is exported.
func (s Service) Shared() bool { return s.Present && s.Exported }

// healthy reports whether the service is exported and has a ready endpoint.
func (s Service) healthy() bool {
	return s.Shared() && slices.ContainsFunc(s.Endpoints, func(e Endpoint) bool { return e.Ready })
}

// usable returns the addresses of the endpoints that answers may contain.
func (s Service) usable() (addresses []netip.Addr) {
	for _, endpoint := range s.Endpoints {
		if endpoint.Ready || endpoint.Serving && endpoint.Terminating {
			addresses = append(addresses, endpoint.Address)
		}
	}
	return addresses
}

// Path returns the states between two states, including the last one. A change of the type requires a new Service,
// because the cluster IP is immutable.
func Path(from, to Service) []Service {
	if from.Present && to.Present && from.Headless != to.Headless {
		gone := to.Clone()
		gone.Present = false
		return []Service{gone, to}
	}
	return []Service{to}
}

// A Write is one request: it creates or replaces Object, or deletes it.
type Write struct {
	Object runtime.Object
	Delete bool
}

// Writes returns the requests, in order, that bring a namespace from a state to the next state of a Path.
func Writes(from, to Service, namespace string) (writes []Write) {
	if to.Present && (!from.Present || from.Affinity != to.Affinity || !slices.Equal(from.Ports, to.Ports)) {
		writes = append(writes, Write{Object: to.service(namespace)})
	}
	if from.Present && !to.Present {
		writes = append(writes, Write{Object: to.service(namespace), Delete: true})
	}
	if !slices.Equal(from.Endpoints, to.Endpoints) || !slices.Equal(from.Ports, to.Ports) {
		writes = append(writes, Write{Object: to.slice(namespace)})
	}
	exportChanged := !maps.Equal(from.Labels, to.Labels) || !maps.Equal(from.Annotations, to.Annotations)
	switch {
	case to.Exported && (!from.Exported || exportChanged):
		writes = append(writes, Write{Object: to.export(namespace)})
	case from.Exported && !to.Exported:
		writes = append(writes, Write{Object: to.export(namespace), Delete: true})
	}
	return writes
}

func (s Service) service(namespace string) *corev1.Service {
	object := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: namespace},
		Spec:       corev1.ServiceSpec{SessionAffinity: corev1.ServiceAffinity(s.Affinity)},
	}
	if s.Headless {
		object.Spec.ClusterIP = corev1.ClusterIPNone
	} else {
		object.Spec.Selector = map[string]string{"app": s.Name} // without a selector, no Service with node ports is derived
	}
	for _, port := range s.Ports {
		object.Spec.Ports = append(object.Spec.Ports, corev1.ServicePort{
			Name: port.Name, Protocol: corev1.Protocol(port.Protocol), Port: port.Number,
			TargetPort: intstr.FromInt32(port.Number),
		})
	}
	return object
}

func (s Service) slice(namespace string) *discoveryv1.EndpointSlice {
	object := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Name + "-team", Namespace: namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: s.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{},
	}
	for _, port := range s.Ports {
		object.Ports = append(object.Ports, discoveryv1.EndpointPort{
			Name: ptr.To(port.Name), Protocol: ptr.To(corev1.Protocol(port.Protocol)), Port: ptr.To(port.Number),
		})
	}
	for _, endpoint := range s.Endpoints {
		object.Endpoints = append(object.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{endpoint.Address.String()}, Hostname: ptr.To(endpoint.Host), NodeName: ptr.To(endpoint.Node),
			Conditions: discoveryv1.EndpointConditions{
				Ready: ptr.To(endpoint.Ready), Serving: ptr.To(endpoint.Serving),
				Terminating: ptr.To(endpoint.Terminating),
			},
		})
	}
	return object
}

func (s Service) export(namespace string) *v1beta1.ServiceExport {
	return &v1beta1.ServiceExport{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.ServiceExportKindName},
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: namespace},
		Spec:       v1beta1.ServiceExportSpec{ExportedLabels: s.Labels, ExportedAnnotations: s.Annotations},
	}
}
