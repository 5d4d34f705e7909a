// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strings"
	"testing"

	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// TestMisplaced: keys of the project that are where they have no effect are reported.
func TestMisplaced(t *testing.T) {
	const problem = "MisplacedKey: ServiceExport demo/web: clusterset-dns.github.io/"
	type keys = map[string]string
	for name, test := range map[string]struct {
		annotations, labels, exportedAnnotations, exportedLabels keys
		problems                                                 []string
		toNone                                                   bool
	}{
		"in their places": {
			annotations:         keys{AnnotationClusters: "west", AnnotationSaturated: "true"},
			exportedAnnotations: keys{AnnotationPrefer: "local", AnnotationWithin: "local", AnnotationWeights: "west=1"},
		},
		"the rules of an import on the ServiceExport": {
			annotations: keys{AnnotationPrefer: "local", AnnotationWithin: "local", AnnotationWeights: "west=1", "note": "x"},
			problems: []string{
				problem + "prefer has no effect in metadata.annotations: move it to spec.exportedAnnotations",
				problem + "within has no effect in metadata.annotations: move it to spec.exportedAnnotations",
				problem + "weights has no effect in metadata.annotations: move it to spec.exportedAnnotations",
			},
		},
		"what is about the ServiceExport among what is exported": {
			exportedAnnotations: keys{AnnotationSaturated: "true"},
			exportedLabels:      keys{AnnotationWithin: "local"},
			problems: []string{
				`ReservedKey: ServiceExport demo/web: exported label "clusterset-dns.github.io/within" is reserved and left out (2 times)`,
			},
		},
		"clusters, exported":          {exportedAnnotations: keys{AnnotationClusters: "*"}, toNone: true},
		"clusters, an exported label": {exportedLabels: keys{AnnotationClusters: "west"}, toNone: true},
		"clusters, a label":           {labels: keys{AnnotationClusters: "west"}, toNone: true},
		"clusters, in both places": {
			annotations:         keys{AnnotationClusters: "west"},
			exportedAnnotations: keys{AnnotationClusters: "north"},
			problems: []string{
				`ReservedKey: ServiceExport demo/web: exported annotation "clusterset-dns.github.io/clusters" is reserved and left out`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := newExport(func(e *v1beta1.ServiceExport) {
				e.Annotations, e.Labels = test.annotations, test.labels
				e.Spec.ExportedAnnotations, e.Spec.ExportedLabels = test.exportedAnnotations, test.exportedLabels
			})
			view, found, invalid := FromService(Exporter{Cluster: "east"}, object, newService("80/TCP"), nil)
			if test.toNone {
				if invalid == nil || invalid.Reason != InvalidClusters || !strings.Contains(invalid.Message, "move it to metadata.annotations") {
					t.Errorf("got %v", invalid)
				}
				return
			}
			if view == nil {
				t.Fatal(invalid)
			}
			diff(t, "problems", texts(found), test.problems)
		})
	}
}
