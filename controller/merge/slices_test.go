// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestNoService: the value is a valid label value, but not the name of a Service.
func TestNoService(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, row := range []struct{ service, cluster, want string }{
		{"db", "east", "DB"},
		{"db", "west", "WEST.DB"},
		{"db", "west.example", "WEST.EXAMPLE.DB"},
		{"3306", "east", "EAST.3306"}, // as RelaxedServiceNameValidation permits
		{long, "east", strings.ToUpper(long)},
		{long, "west", "WEST." + strings.ToUpper(long)[:58]},
		{"db", long[:62], strings.ToUpper(long)[:62]},
	} {
		observed := newObserved("east")
		observed.Service.Name = row.service
		got := noService(observed, row.cluster)
		if problems := validation.IsValidLabelValue(got); got != row.want || len(problems) > 0 {
			t.Errorf("service %s, cluster %s: %q, want %q: %v", row.service, row.cluster, got, row.want, problems)
		}
	}
}
