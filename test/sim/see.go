// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// See returns what clients of a cluster see of a service, as text: the endpoints in its EndpointSlices, sorted, each as
// cluster/address, with ~ if it is not ready and - if it does not serve, and what DNS answers to a question for A records, in which VIP is the
// cluster IP of the ServiceImport:
//
//	east/10.64.0.1 west/10.65.0.1~ -> VIP
func (c *Cluster) See(service string) string {
	answer := c.DNS.Text(service, Namespace)
	for _, each := range apiserver.List[*unstructured.Unstructured](c.API, v1beta1.Resource("serviceimports")) {
		if ips, _, _ := unstructured.NestedStringSlice(each.Object, "spec", "ips"); each.GetName() == service && slices.Contains(ips, answer) {
			answer = "VIP"
		}
	}
	var endpoints []string
	for _, slice := range apiserver.List[*discoveryv1.EndpointSlice](c.API, discoveryv1.Resource("endpointslices")) {
		if slice.Labels[v1beta1.LabelServiceName] != service {
			continue
		}
		for _, each := range slice.Endpoints {
			mark, serves := "", each.Conditions.Serving == nil || *each.Conditions.Serving
			switch {
			case each.Conditions.Ready == nil || *each.Conditions.Ready:
			case serves:
				mark = "~"
			default:
				mark = "-"
			}
			endpoints = append(endpoints, slice.Labels[v1beta1.LabelSourceCluster]+"/"+each.Addresses[0]+mark)
		}
	}
	slices.Sort(endpoints)
	return strings.TrimPrefix(strings.Join(endpoints, " ")+" -> "+answer, " ")
}

// State returns the exports, imports, Services and EndpointSlices of the namespace of scenarios as JSON, one in a line,
// sorted. Times, UIDs, revisions and cluster IPs are left out: a cluster that came there by another way has the same.
func (c *Cluster) State() string {
	var lines []string
	for _, resource := range []schema.GroupVersionResource{
		serviceExports, v1beta1.SchemeGroupVersion.WithResource("serviceimports"),
		corev1.SchemeGroupVersion.WithResource("services"), discoveryv1.SchemeGroupVersion.WithResource("endpointslices"),
	} {
		list, err := c.Dynamic.Resource(resource).Namespace(Namespace).List(context.Background(), metav1.ListOptions{})
		c.Must(err)
		for _, each := range list.Items {
			text, err := each.MarshalJSON()
			c.Must(err)
			for pattern, name := range changing {
				text = pattern.ReplaceAll(text, []byte(name))
			}
			lines = append(lines, string(text))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// changing is what State leaves out.
var changing = map[*regexp.Regexp]string{
	regexp.MustCompile(`20\d\d-\d\d-\d\dT[\d:.]+Z`):                                        "(time)",
	regexp.MustCompile(`\b10\.1\d\d\.\d+\.\d+\b`):                                          "(cluster IP)",
	regexp.MustCompile(`("(?:uid|resourceVersion|generation|observedGeneration)":)[^,}]+`): "${1}0",
}
