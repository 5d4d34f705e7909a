// SPDX-License-Identifier: Apache-2.0

package export

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStripKeepsSnapshotsOnly: how the DNS of a cluster answers is not part of its snapshot.
func TestStripKeepsSnapshotsOnly(t *testing.T) {
	stripped := Strip(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		AnnotationSRV: "x", AnnotationSnapshotPrefix + "v1": "{}", "other": "x",
	}}})
	if len(stripped.Annotations) != 1 || stripped.Annotations[AnnotationSnapshotPrefix+"v1"] == "" {
		t.Errorf("kept %v", stripped.Annotations)
	}
}
