// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestSaturated: the rules of the local cluster name what overloads it.
func TestSaturated(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"neither": {nil, ""},
		"said":    {map[string]string{export.AnnotationSaturated: "true", export.AnnotationSaturatedBelow: "50"}, "saturated"},
		"below":   {map[string]string{export.AnnotationSaturatedBelow: "50"}, "saturated-below 50: 1 of 3 ready"},
	} {
		f := newFacts()
		f.Exports[0].Annotations = test.annotations
		f.Imports[0].CreationTimestamp = metav1.Time{Time: time.Unix(1e9, 0)}
		f.Services[0].Spec.Ports = []corev1.ServicePort{{Port: 80}}
		slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
		slice.Namespace, slice.Name = "shop", "db-1"
		slice.Labels = map[string]string{export.LabelKubernetesService: "db"}
		for i, address := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{address}, Conditions: export.Conditions(i == 0, i == 0, false),
			})
		}
		f.Slices = append(f.Slices, slice)
		f.Members = []facts.Member{{ID: "west"}}
		e := Of(f, service, DefaultZone)
		if got := strings.Join(e.Exports[0].Rules, ", "); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
