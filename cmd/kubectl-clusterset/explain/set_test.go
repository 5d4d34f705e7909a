// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestZoneOfAnotherSet expects of a zone what its set has, which is nothing for a service of another set.
func TestZoneOfAnotherSet(t *testing.T) {
	for name, test := range map[string]struct {
		set      export.Set
		option   string
		expected int // records
		problem  string
	}{
		"the default set": {"", "", 1, ""},
		"a named set":     {"blue", "clusterset blue", 1, ""},
		"the zone of the default set": {
			"blue", "", 0, "The Corefile of east serves clusterset.local for the default cluster set, not for cluster set blue. > " +
				"Select the zone of cluster set blue with --zone, or correct the option clusterset in the Corefile.",
		},
		"the zone of a named set": {
			"", "clusterset blue", 0, "The Corefile of east serves clusterset.local for cluster set blue, not for the default " +
				"cluster set. > Select the zone of the default cluster set with --zone, or correct the option clusterset in the " +
				"Corefile.",
		},
	} {
		f := newFacts("10.0.0.1 ready serving")
		if test.set != "" {
			f.Namespaces = map[string]*corev1.Namespace{service.Namespace: {ObjectMeta: metav1.ObjectMeta{
				Labels: map[string]string{export.LabelSet: string(test.set)},
			}}}
		}
		f.Set, f.Corefile = test.set, ". {\nmulticluster clusterset.local {\n"+test.option+"\n}\n}"
		e := Of(f, service, DefaultZone)
		got := ""
		for _, problem := range e.Problems {
			got += problem.What + " > " + problem.Fix
		}
		if got != test.problem {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.problem)
		}
		e.Answered("a server", dns.Answer{Type: "A", Rcode: "NXDOMAIN"})
		if answer := e.Answers[0]; len(answer.Expected) != test.expected || answer.Wrong != (test.expected > 0) {
			t.Errorf("%s: got %+v", name, answer)
		}
	}
}
