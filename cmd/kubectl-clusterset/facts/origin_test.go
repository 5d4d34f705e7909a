// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// TestOrigin: a member without a Secret is not taken for one without a credential if its Lease names its origin.
func TestOrigin(t *testing.T) {
	for text, want := range map[string]string{"": "", "garbage": "", "clusterprofile:fleet ClusterProfile fleet/west": "ClusterProfile fleet/west"} {
		m := &Member{ID: "west", Lease: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{memberstate.OriginAnnotation: text},
		}}}
		m.ask(t.Context(), "", "clusterset-dns")
		if got := m.Origin(); got != want || want != "" && !strings.Contains(m.Unread.Error(), want) {
			t.Errorf("%q: the origin is %q, want %q; unread: %v", text, got, want, m.Unread)
		}
	}
}
