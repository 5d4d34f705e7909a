// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// TestLimits: what an import reports of its border and its weights is a problem if it is not in effect.
func TestLimits(t *testing.T) {
	const patch = "kubectl --context east -n shop patch serviceexport db --type merge -p " +
		`'{"spec":{"exportedAnnotations":{"clusterset-dns.github.io/`
	for name, test := range map[string]struct {
		kind, reason string
		status       metav1.ConditionStatus
		want         string
	}{
		"a border":          {merge.ConditionWithin, merge.ReasonLimited, metav1.ConditionTrue, ""},
		"an invalid border": {merge.ConditionWithin, merge.ReasonInvalidBorder, metav1.ConditionFalse, "Told. > " + patch + `within":"<ids and label selectors of clusters>"}}}'`},
		"weights":           {merge.ConditionWeights, merge.ReasonInEffect, metav1.ConditionTrue, ""},
		"invalid weights":   {merge.ConditionWeights, merge.ReasonInvalidWeights, metav1.ConditionFalse, "Told. > " + patch + `weights":"<shares of clusters, such as west=10>"}}}'`},
		"other shares":      {merge.ConditionWeights, merge.ReasonOtherShares, metav1.ConditionFalse, "Told. > Change the number of ready endpoints, or the weights: `" + patch + "weights\":\"<shares of clusters, such as west=10>\"}}}'`."},
	} {
		f := newFacts("10.0.0.1 ready serving")
		f.Imports[0].Status.Conditions = append(f.Imports[0].Status.Conditions, metav1.Condition{
			Type: test.kind, Status: test.status, Reason: test.reason, Message: "Told.",
		})
		var got []string
		for _, problem := range Of(f, service, DefaultZone).Problems {
			got = append(got, problem.What+" > "+problem.Fix)
		}
		if text := strings.Join(got, "\n"); text != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, text, test.want)
		}
	}
	f := newFacts("10.0.0.1")
	f.Imports[0].Status.Conditions = append(f.Imports[0].Status.Conditions, metav1.Condition{
		Type: merge.ConditionWeights, Status: metav1.ConditionFalse, Reason: merge.ReasonOtherShares, Message: "No endpoint is ready.",
	})
	if problems := Of(f, service, DefaultZone).Problems; len(problems) != 1 ||
		problems[0].What != "No endpoint of db is ready in any cluster." {
		t.Errorf("without a ready endpoint: %+v", problems)
	}
	f = newFacts("10.0.0.1 ready serving")
	f.Imports[0].Labels = nil
	f.Imports[0].Annotations = map[string]string{export.AnnotationWithin: "region=eu > us"}
	for _, problem := range Of(f, service, DefaultZone).Problems {
		if strings.Contains(problem.Fix, "within") {
			t.Errorf("a foreign import: %+v", problem)
		}
	}
}
