// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestKeepExposed: while it is not known how clusters of other networks reach a service, what is published for them stays,
// and so do the slices of the network that the cluster was in. What is known of the pods counts nevertheless.
func TestKeepExposed(t *testing.T) {
	made := func(name, label, network string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{label: "web", export.LabelSourceCluster: "east"},
				Annotations: map[string]string{export.AnnotationSnapshot: `{"cluster":"east","slice":{"network":"` + network + `"}}`},
			},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}, Conditions: export.Conditions(true, true, false)}},
		}
	}
	pods, former := made("pods", export.LabelService, "red"), made("former", export.LabelService, "blue")
	balancer, others := made("balancer", export.LabelExposed, "red"), made("others", export.LabelExposed, "red")
	others.Labels[export.LabelSourceCluster] = "west"
	for name, test := range map[string]struct {
		keep     bool
		kept     *discoveryv1.EndpointConditions
		existing []*discoveryv1.EndpointSlice
		want     string
	}{
		"all is known":          {false, nil, []*discoveryv1.EndpointSlice{pods, former, balancer}, "pods new"},
		"nothing was published": {true, nil, []*discoveryv1.EndpointSlice{pods}, "pods new"},
		"a name is unknown":     {true, nil, []*discoveryv1.EndpointSlice{pods, balancer, others}, "pods balancer"},
		"it is, after a move":   {true, nil, []*discoveryv1.EndpointSlice{former, balancer}, "pods former balancer"},
		"it is, without pods":   {true, ptr.To(export.Conditions(false, false, false)), []*discoveryv1.EndpointSlice{pods, balancer}, "pods balancer!"},
	} {
		view := newView("east", 1, "http:80/TCP", "10.1.0.1")
		view.KeepExposed, view.KeptConditions, view.Slices[0].Network = test.keep, test.kept, "red"
		result := Result{EndpointSlices: []*discoveryv1.EndpointSlice{pods, made("new", export.LabelExposed, "red")}}
		result.KeepExposed(Observed{EndpointSlices: test.existing}, contribute(view))
		got := ""
		for i, slice := range result.EndpointSlices {
			if i > 0 {
				got += " "
			}
			if got += slice.Name; !*slice.Endpoints[0].Conditions.Ready {
				got += "!"
			}
		}
		diff(t, name, got, test.want)
		diff(t, name+", what exists", balancer.Endpoints[0].Conditions, export.Conditions(true, true, false))
	}
}
