// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

func TestSaturated(t *testing.T) {
	for _, test := range []struct {
		says, below string
		ready, all  int
		want, wrong bool
	}{
		{"", "", 0, 4, false, false},
		{"true", "", 4, 4, true, false},
		{"false", "", 4, 4, false, false},
		{"yes", "", 4, 4, false, false},
		{"", "50", 2, 4, false, false},
		{"", "50", 1, 4, true, false},
		{"", "100", 3, 4, true, false},
		{"", "1", 0, 4, true, false},
		{"", "50", 0, 0, false, false},
		{"true", "0", 4, 4, true, false},
		{"", "0", 0, 4, false, true},
		{"", "101", 0, 4, false, true},
		{"", "50%", 0, 4, false, true},
		{"", strings.Repeat("5", 1000), 0, 4, false, true},
	} {
		serviceExport := &v1beta1.ServiceExport{}
		serviceExport.Annotations = map[string]string{AnnotationSaturated: test.says, AnnotationSaturatedBelow: test.below}
		var endpoints []discoveryv1.Endpoint
		for i := range test.all {
			endpoints = append(endpoints, discoveryv1.Endpoint{Conditions: Conditions(i < test.ready, i < test.ready, false)})
		}
		var found problems
		if got := saturated(serviceExport, []Slice{{Endpoints: endpoints}}, &found); got != test.want {
			t.Errorf("%+v: got %t", test, got)
		}
		if (len(found.list) > 0) != test.wrong {
			t.Errorf("%+v: problems %v", test, found.list)
		}
	}
}
