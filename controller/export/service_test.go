// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// TestFromService: endpoints are exported with what the local cluster reads of them, and no input is changed.
// TestSnapshotText has the rest of a view.
func TestFromService(t *testing.T) {
	service := newService("http:80/TCP dns:53/UDP", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer })
	exported := newExport()
	slice := newSlice("web-1", "dns:5353/UDP http:8080/TCP", "10.1.0.1 !10.1.0.2", func(s *discoveryv1.EndpointSlice) {
		s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-03-01T12:00:00.123Z"}
		s.Endpoints[0].Hostname = ptr.To("web-0")
		s.Endpoints[1].Conditions = discoveryv1.EndpointConditions{Ready: ptr.To(false)}
	})
	inputs := []any{service.DeepCopy(), exported.DeepCopy(), slice.DeepCopy()}
	view := mustView(t, exported, service, slice)
	diff(t, "type", view.Spec.Type, v1beta1.ClusterSetIP)
	want := slice.DeepCopy().Endpoints
	for i := range want {
		want[i].Hints = nil
	}
	want[1].Conditions = Conditions(false, true, false)
	diff(t, "slices", view.Slices, []Slice{{
		Name:        SliceName("east", web, "web-1", discoveryv1.AddressTypeIPv4),
		AddressType: discoveryv1.AddressTypeIPv4,
		Targets:     []Target{{corev1.ProtocolTCP, 80, 8080}, {corev1.ProtocolUDP, 53, 5353}},
		Endpoints:   want, TriggerTime: "2026-03-01T12:00:00.123Z",
	}})
	diff(t, "inputs", []any{service, exported, slice}, inputs)
}

// TestSaturated: the annotation says that the cluster is overloaded. An invalid one is reported.
func TestSaturated(t *testing.T) {
	for text, want := range map[string]bool{"": false, "true": true, "false": false, "True": false, "yes": false} {
		view, found, _ := FromService(Exporter{Cluster: "east"}, newExport(func(e *v1beta1.ServiceExport) {
			e.Annotations = map[string]string{AnnotationSaturated: text}
		}), newService("80/TCP"), nil)
		if view.Spec.Saturated != want || (len(found) > 0) != (text == "True" || text == "yes") {
			t.Errorf("%q: got %t, %v", text, view.Spec.Saturated, found)
		}
	}
}

func TestFromServiceInvalid(t *testing.T) {
	var many []string
	for i := range 101 {
		many = append(many, fmt.Sprintf("p%d:%d/TCP", i, i+1))
	}
	for name, test := range map[string]struct {
		export  *v1beta1.ServiceExport
		service *corev1.Service
		want    Invalid
	}{
		"no Service": {newExport(), nil, Invalid{"NoService", "Service demo/web does not exist. Create it, or delete the ServiceExport."}},
		"ExternalName": {
			newExport(), newService("", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }),
			Invalid{
				"InvalidServiceType",
				"Service demo/web is of type ExternalName, which cannot be exported. Use another type.",
			},
		},
		"derived Service": {
			newExport(), newService("80/TCP",
				func(s *corev1.Service) { s.Labels = map[string]string{LabelManagedBy: Manager} }),
			Invalid{
				"InvalidServiceType",
				"Service demo/web is imported and cannot be exported again. Export the original Service instead.",
			},
		},
		"too many ports": {newExport(), newService(strings.Join(many, " ")), Invalid{"InvalidPorts", "Service demo/web has 101 ports. At most 100 can be exported."}},
		"being deleted":  {newExport(func(e *v1beta1.ServiceExport) { e.DeletionTimestamp = &metav1.Time{Time: created} }), newService("80/TCP"), Invalid{"Deleted", "ServiceExport demo/web is being deleted."}},
	} {
		t.Run(name, func(t *testing.T) {
			view, found, invalid := FromService(Exporter{Cluster: "east"}, test.export, test.service, nil)
			absent := view != nil && view.Absent() // see TestAbsentText
			if (view != nil && !absent) || absent != (name == "no Service") || len(found) > 0 || invalid == nil {
				t.Fatalf("FromService = %v, %v, %v", view, found, invalid)
			}
			diff(t, "invalid", *invalid, test.want)
		})
	}
}

func TestFromServiceSpec(t *testing.T) {
	for name, test := range map[string]struct {
		service func(*corev1.Service)
		want    func(*Spec)
	}{
		"headless": {
			func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", []string{"None"} },
			func(s *Spec) { s.Type = v1beta1.Headless },
		},
		"headless without ports": {
			func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.Ports = "None", nil },
			func(s *Spec) { s.Type, s.Ports = v1beta1.Headless, nil },
		},
		"dual stack": {
			func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{"IPv6", "IPv4"} },
			func(s *Spec) { s.IPFamilies = []corev1.IPFamily{"IPv6", "IPv4"} },
		},
		"without families": {
			func(s *corev1.Service) { s.Spec.IPFamilies = nil },
			func(*Spec) {},
		},
		"without families, IPv6": {
			func(s *corev1.Service) { s.Spec.IPFamilies, s.Spec.ClusterIP = nil, "fd00::7" },
			func(s *Spec) { s.IPFamilies = []corev1.IPFamily{"IPv6"} },
		},
		"without a policy": {
			func(s *corev1.Service) { s.Spec.InternalTrafficPolicy = nil },
			func(*Spec) {},
		},
		"policy Local": {
			func(s *corev1.Service) {
				s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal)
			},
			func(s *Spec) { s.InternalTrafficPolicy = corev1.ServiceInternalTrafficPolicyLocal },
		},
		"affinity config without affinity": {
			func(s *corev1.Service) {
				s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
					ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](60)},
				}
			},
			func(*Spec) {},
		},
		"port without protocol": {
			func(s *corev1.Service) { s.Spec.Ports[0].Protocol = "" },
			func(*Spec) {},
		},
		"SCTP, and one number in two protocols": {
			func(s *corev1.Service) {
				s.Spec.Ports = []corev1.ServicePort{
					{Name: "a", Port: 80, Protocol: "SCTP"},
					{Name: "b", Port: 80, Protocol: "UDP"},
				}
			},
			func(s *Spec) {
				s.Ports = []Port{{Name: "a", Number: 80, Protocol: "SCTP"}, {Name: "b", Number: 80, Protocol: "UDP"}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := &Spec{
				Created: created, Type: v1beta1.ClusterSetIP,
				Ports:                 []Port{{Protocol: corev1.ProtocolTCP, Number: 80}},
				IPFamilies:            []corev1.IPFamily{corev1.IPv4Protocol},
				SessionAffinity:       corev1.ServiceAffinityNone,
				InternalTrafficPolicy: corev1.ServiceInternalTrafficPolicyCluster,
			}
			test.want(want)
			diff(t, "spec", mustView(t, newExport(), newService("80/TCP", test.service)).Spec, want)
		})
	}
}

func TestFromServiceMetadata(t *testing.T) {
	view, found, invalid := FromService(Exporter{Cluster: "east"}, newExport(func(e *v1beta1.ServiceExport) {
		e.Spec.ExportedLabels = map[string]string{
			"team": "red", "example.com/tier": "front",
			"kubernetes.io/service-name": "x", "service.kubernetes.io/headless": "", "multicluster.x-k8s.io/a": "b",
			"k8s.io/c":                        "d",
			"clusterset-dns.github.io/prefer": "cluster", "sub.clusterset-dns.github.io/x": "y",
			"bad key": "x", "long": strings.Repeat("x", 64),
		}
		e.Spec.ExportedAnnotations = map[string]string{
			"note": "anything, at all\n", "Kubernetes.IO/upper": "x", "service.kubernetes.io/topology-mode": "Auto",
			"clusterset-dns.github.io/adopt": "true", "notclusterset-dns.github.io/fine": "x",
		}
	}), newService("80/TCP"), nil)
	if invalid != nil {
		t.Fatal(invalid)
	}
	diff(t, "labels", view.Spec.Labels, map[string]string{"team": "red", "example.com/tier": "front"})
	diff(t, "annotations", view.Spec.Annotations, map[string]string{
		"note":                             "anything, at all\n",
		"notclusterset-dns.github.io/fine": "x",
	})
	diff(t, "problems", texts(found), []string{
		`BadMetadata: ServiceExport demo/web: exported label "bad key" is not valid and left out (2 times)`,
		`ReservedKey: ServiceExport demo/web: exported label "clusterset-dns.github.io/prefer" is reserved and left out (9 times)`,
	})
}

func TestFromServiceMetadataTooLarge(t *testing.T) {
	view, found, _ := FromService(Exporter{Cluster: "east"}, newExport(func(e *v1beta1.ServiceExport) {
		e.Spec.ExportedLabels = map[string]string{"team": "red"}
		e.Spec.ExportedAnnotations = map[string]string{"note": strings.Repeat("\x01", 12000)}
	}), newService("80/TCP"), nil)
	if view.Spec.Labels != nil || view.Spec.Annotations != nil {
		t.Errorf("metadata beyond the limit was kept: %d labels", len(view.Spec.Labels))
	}
	diff(t, "problems", texts(found), []string{
		`TooLarge: ServiceExport demo/web: exported labels and annotations have 72025 bytes and are left out; the limit is 65536`,
	})
}

func TestFromServiceSlices(t *testing.T) {
	labelled := func(key, value string) func(*discoveryv1.EndpointSlice) {
		return func(s *discoveryv1.EndpointSlice) { s.Labels[key] = value }
	}
	for name, test := range map[string]struct {
		slices []*discoveryv1.EndpointSlice
		// want is one line for each slice: type, targets, addresses.
		want     []string
		problems []string
	}{
		"none": {want: []string{"IPv4 [] []"}},
		"ours and others' are no input": {
			slices: []*discoveryv1.EndpointSlice{
				newSlice("a", "80/TCP", "10.1.0.1", labelled(LabelSliceManagedBy, Manager)),
				newSlice("b", "80/TCP", "10.1.0.2", labelled(LabelSourceCluster, "west")),
			},
			want: []string{"IPv4 [] []"},
		},
		"FQDN": {
			slices: []*discoveryv1.EndpointSlice{newSlice("a", "80/TCP", "", func(s *discoveryv1.EndpointSlice) {
				s.AddressType = discoveryv1.AddressTypeFQDN
				s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"example.com"}}}
			})},
			want:     []string{"IPv4 [] []"},
			problems: []string{`BadAddressType: EndpointSlice demo/a: address type "FQDN" is not exported`},
		},
		"other target numbers": {
			slices: []*discoveryv1.EndpointSlice{
				newSlice("a", "8080/TCP", "10.1.0.1"),
				newSlice("b", "8081/TCP", "10.1.0.2"),
			},
			want: []string{"IPv4 [TCP 80 8080] [10.1.0.1]", "IPv4 [TCP 80 8081] [10.1.0.2]"},
		},
		"ports that the Service lacks": {
			slices: []*discoveryv1.EndpointSlice{newSlice("a", "http:80/TCP 80/UDP", "10.1.0.1")},
			want:   []string{"IPv4 [] [10.1.0.1]"},
		},
		"port without a number": {
			slices: []*discoveryv1.EndpointSlice{newSlice("a", "80/TCP", "10.1.0.1",
				func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = nil })},
			want: []string{"IPv4 [] [10.1.0.1]"},
		},
		"both families": {
			slices: []*discoveryv1.EndpointSlice{
				newSlice("a", "80/TCP", "fd00::1"),
				newSlice("b", "80/TCP", "10.1.0.2"),
			},
			want: []string{"IPv4 [TCP 80 80] [10.1.0.2]", "IPv6 [TCP 80 80] [fd00::1]"},
		},
		"addresses of no pod": {
			slices:   []*discoveryv1.EndpointSlice{newSlice("a", "80/TCP", "127.0.0.1 10.1.0.1 169.254.169.254")},
			want:     []string{"IPv4 [TCP 80 80] [10.1.0.1]"},
			problems: []string{`BadAddress: EndpointSlice demo/a: 127.0.0.1 is not the address of a pod (2 times)`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			view, found, invalid := FromService(Exporter{Cluster: "east"}, newExport(), newService("80/TCP"), test.slices)
			if invalid != nil {
				t.Fatal(invalid)
			}
			diff(t, "slices", lines(view), test.want)
			diff(t, "problems", texts(found), test.problems)
		})
	}
}
