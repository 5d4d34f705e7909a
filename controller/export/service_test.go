// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

func TestFromServiceInvalid(t *testing.T) {
	var many []string
	for i := range 101 {
		many = append(many, fmt.Sprintf("p%d:%d/TCP", i, i+1))
	}
	external := func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }
	derived := func(s *corev1.Service) { s.Labels = map[string]string{LabelManagedBy: Manager} }
	deleted := newExport(func(e *v1beta1.ServiceExport) { e.DeletionTimestamp = &metav1.Time{Time: created} })
	for want, test := range map[string]struct {
		export  *v1beta1.ServiceExport
		service *corev1.Service
	}{
		"NoService: Service demo/web does not exist. Create it, or delete the ServiceExport.":                                 {newExport(), nil},
		"InvalidServiceType: Service demo/web is of type ExternalName, which cannot be exported. Use another type.":           {newExport(), newService("", external)},
		"InvalidServiceType: Service demo/web is imported and cannot be exported again. Export the original Service instead.": {newExport(), newService("80/TCP", derived)},
		"InvalidSpec: Service demo/web cannot be exported: it has 101 ports: use at most 100.":                                {newExport(), newService(strings.Join(many, " "))},
		"InvalidSpec: Service demo/web cannot be exported: its exported labels and annotations have 65537 bytes: use at most 65536.": {
			newExport(func(e *v1beta1.ServiceExport) {
				e.Spec.ExportedAnnotations = map[string]string{"note": strings.Repeat("x", 65522)}
			}), newService("80/TCP"),
		},
		"Deleted: ServiceExport demo/web is being deleted.": {deleted, newService("80/TCP")},
	} {
		view, found, invalid := FromService(Exporter{Cluster: "east"}, test.export, test.service, nil)
		absent := view != nil && view.Absent() // see TestAbsentText
		if view != nil && !absent || absent != (test.service == nil) || len(found) > 0 || invalid == nil {
			t.Errorf("FromService = %v, %v, %v", view, found, invalid)
		} else if got := invalid.Reason + ": " + invalid.Message; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestFromServiceMetadata: exported labels and annotations, and misplaced keys of the project, which have no effect.
func TestFromServiceMetadata(t *testing.T) {
	const object, moved = " ServiceExport demo/web: ", ": it has no effect in metadata.annotations: move it to spec.exportedAnnotations"
	const misplaced = "BadMetadata: ServiceExport demo/web, annotation "
	type keys = map[string]string
	for name, test := range map[string]struct {
		annotations, exportedAnnotations, exportedLabels keys
		wantAnnotations, wantLabels                      keys
		problems                                         []string
		overloaded, toNone                               bool
	}{
		"of several domains": {
			exportedLabels: keys{
				"team": "red", "example.com/tier": "front", "kubernetes.io/service-name": "x", "service.kubernetes.io/headless": "",
				"multicluster.x-k8s.io/a": "b", "k8s.io/c": "d", AnnotationPrefer: "cluster", "sub.clusterset-dns.github.io/x": "y",
				"bad key": "x", "long": strings.Repeat("x", 64),
			},
			exportedAnnotations: keys{
				"note": "anything, at all\n", "Kubernetes.IO/upper": "x", "service.kubernetes.io/topology-mode": "Auto",
				AnnotationAdopt: "true", "notclusterset-dns.github.io/fine": "x", "bad key": "x",
			},
			wantLabels:      keys{"team": "red", "example.com/tier": "front"},
			wantAnnotations: keys{"note": "anything, at all\n", "notclusterset-dns.github.io/fine": "x"},
			problems: []string{
				`BadMetadata:` + object + `exported label "bad key" is not valid and left out`,
			},
		},
		"keys in their places": {
			annotations:         keys{AnnotationClusters: "west", AnnotationOverloaded: "true"},
			exportedAnnotations: keys{AnnotationPrefer: "local", AnnotationAllowedClusters: "local", AnnotationWeights: "west=1"},
			wantAnnotations:     keys{AnnotationPrefer: "local", AnnotationAllowedClusters: "local", AnnotationWeights: "west=1"},
			overloaded:          true,
		},
		"overloaded, as nobody writes it": {
			annotations: keys{AnnotationOverloaded: "True"},
			problems:    []string{"BadMetadata: ServiceExport demo/web, annotation " + AnnotationOverloaded + `: "True" has no effect: use true or false`},
		},
		"the rules of an import on the ServiceExport": {
			annotations: keys{AnnotationPrefer: "local", AnnotationAllowedClusters: "local", AnnotationWeights: "west=1", "note": "x"},
			problems: []string{
				misplaced + AnnotationPrefer + moved, misplaced + AnnotationAllowedClusters + moved, misplaced + AnnotationWeights + moved,
			},
		},
		"clusters, exported": {exportedAnnotations: keys{AnnotationClusters: "*"}, toNone: true},
	} {
		t.Run(name, func(t *testing.T) {
			view, found, invalid := FromService(Exporter{Cluster: "east"}, newExport(func(e *v1beta1.ServiceExport) {
				e.Annotations = test.annotations
				e.Spec.ExportedAnnotations, e.Spec.ExportedLabels = test.exportedAnnotations, test.exportedLabels
			}), newService("80/TCP"), nil)
			if test.toNone {
				if invalid == nil || invalid.Reason != InvalidClusters || !strings.Contains(invalid.Message, "move it to metadata.annotations") {
					t.Errorf("got %v", invalid)
				}
				return
			}
			if view == nil {
				t.Fatal(invalid)
			}
			diff(t, "labels", view.Spec.Labels, test.wantLabels)
			diff(t, "annotations", view.Spec.Annotations, test.wantAnnotations)
			diff(t, "overloaded", view.Spec.Overloaded, test.overloaded)
			diff(t, "problems", texts(found), test.problems)
		})
	}
}

func TestFromServiceSlices(t *testing.T) {
	type slices = []*discoveryv1.EndpointSlice
	fqdn := func(s *discoveryv1.EndpointSlice) {
		s.AddressType, s.Endpoints = discoveryv1.AddressTypeFQDN, []discoveryv1.Endpoint{{Addresses: []string{"example.com"}}}
	}
	for name, test := range map[string]struct {
		slices        slices
		want, problem string // as in lines
	}{
		"none":        {nil, "IPv4", ""},
		"one of ours": {slices{newSlice("a", "80/TCP", "10.1.0.1", labelled(LabelSliceManagedBy, Manager))}, "IPv4", ""},
		"FQDN":        {slices{newSlice("a", "80/TCP", "", fqdn)}, "IPv4", `BadAddress: EndpointSlice demo/a: address type "FQDN" is not exported`},
		"port of no number": {
			slices{newSlice("a", "80/TCP", "10.1.0.1", func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = nil })}, "IPv4 10.1.0.1@zone-a", "",
		},
		"other target numbers": {
			slices{newSlice("a", "8080/TCP", "10.1.0.1"), newSlice("b", "8081/TCP", "10.1.0.2")},
			"IPv4 TCP/80->8080 10.1.0.1@zone-a; IPv4 TCP/80->8081 10.1.0.2@zone-a", "",
		},
		"two with problems": { // told in one order: a condition that changes is written again
			slices{newSlice("b", "80/TCP", "127.0.0.1"), newSlice("a", "80/TCP", "127.0.0.2")},
			"IPv4 TCP/80->80; IPv4 TCP/80->80",
			"BadAddress: EndpointSlice demo/a: 127.0.0.2 is not the address of a pod; BadAddress: EndpointSlice demo/b: 127.0.0.1 is not the address of a pod",
		},
		"addresses of no pod": {
			slices{newSlice("a", "80/TCP", "127.0.0.1 10.1.0.1 169.254.169.254")},
			"IPv4 TCP/80->80 10.1.0.1@zone-a", `BadAddress: EndpointSlice demo/a: 127.0.0.1 is not the address of a pod`,
		},
		"addresses in any form": { // as Kubernetes allows
			slices{newSlice("a", "80/TCP", "FD00::1 fd00:0::2 FE80::1")},
			"IPv6 TCP/80->80 fd00::1@zone-a fd00::2@zone-a", `BadAddress: EndpointSlice demo/a: fe80::1 is not the address of a pod`,
		},
	} {
		view, found, invalid := FromService(Exporter{Cluster: "east"}, newExport(), newService("80/TCP"), test.slices)
		if invalid != nil {
			t.Fatal(invalid)
		}
		diff(t, name+": slices", strings.Join(lines(view), "; "), test.want)
		diff(t, name+": problems", strings.Join(texts(found), "; "), test.problem)
	}
}
