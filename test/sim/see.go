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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// State returns the exports, imports, Services and EndpointSlices of the namespace of scenarios as JSON, one in a line,
// sorted. Times, UIDs, revisions and cluster IPs are left out: a cluster that came there by another way has the same.
func (c *Cluster) State() string {
	var lines []string
	for _, resource := range []schema.GroupVersionResource{
		v1beta1.SchemeGroupVersion.WithResource("serviceexports"), v1beta1.SchemeGroupVersion.WithResource("serviceimports"),
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
