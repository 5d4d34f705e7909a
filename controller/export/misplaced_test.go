// SPDX-License-Identifier: Apache-2.0

package export

import (
	"testing"

	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// TestMisplaced: keys of the project that are where they have no effect are reported, each with its place.
func TestMisplaced(t *testing.T) {
	const problem = "MisplacedKey: ServiceExport demo/web: clusterset-dns.github.io/"
	type keys = map[string]string
	for name, test := range map[string]struct {
		annotations, labels, exportedAnnotations, exportedLabels keys
		problems                                                 []string
		invalid                                                  string
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
			exportedAnnotations: keys{AnnotationSaturated: "true", AnnotationAdopt: "true"},
			problems: []string{
				problem + "saturated has no effect in spec.exportedAnnotations: move it to metadata.annotations",
				`ReservedKey: ServiceExport demo/web: exported annotation "clusterset-dns.github.io/adopt" is reserved and left out`,
			},
		},
		"labels": {
			labels:         keys{AnnotationWithin: "local"},
			exportedLabels: keys{AnnotationWithin: "local", AnnotationPrefer: "east > west", AnnotationSaturated: "true"},
			problems: []string{
				problem + "saturated has no effect in spec.exportedLabels: move it to metadata.annotations",
				problem + "prefer has no effect in spec.exportedLabels: move it to spec.exportedAnnotations",
				problem + "within has no effect in spec.exportedLabels: move it to spec.exportedAnnotations",
				problem + "within has no effect in metadata.labels: move it to spec.exportedAnnotations",
			},
		},
		"clusters, exported": {
			exportedAnnotations: keys{AnnotationClusters: "west"},
			invalid:             "it is in spec.exportedAnnotations: move it to metadata.annotations",
		},
		"clusters, exported, for all": {
			exportedAnnotations: keys{AnnotationClusters: "*"},
			invalid:             "it is in spec.exportedAnnotations: move it to metadata.annotations",
		},
		"clusters, an exported label": {
			exportedLabels: keys{AnnotationClusters: "west"},
			invalid:        "it is in spec.exportedLabels: move it to metadata.annotations",
		},
		"clusters, a label": {
			labels:  keys{AnnotationClusters: "west"},
			invalid: "it is in metadata.labels: move it to metadata.annotations",
		},
		"clusters, in both places": {
			annotations:         keys{AnnotationClusters: "west"},
			exportedAnnotations: keys{AnnotationClusters: "north"},
			problems: []string{
				problem + "clusters has no effect in spec.exportedAnnotations: move it to metadata.annotations",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := newExport(func(e *v1beta1.ServiceExport) {
				e.Annotations, e.Labels = test.annotations, test.labels
				e.Spec.ExportedAnnotations, e.Spec.ExportedLabels = test.exportedAnnotations, test.exportedLabels
			})
			view, found, invalid := FromService(Exporter{Cluster: "east"}, object, newService("80/TCP"), nil)
			if test.invalid != "" {
				diff(t, "invalid", invalid, &Invalid{
					InvalidClusters,
					"ServiceExport demo/web is exported to no cluster: annotation clusterset-dns.github.io/clusters: " +
						test.invalid + ".",
				})
				return
			}
			if view == nil {
				t.Fatal(invalid)
			}
			diff(t, "problems", texts(found), test.problems)
		})
	}
}
