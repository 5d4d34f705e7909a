// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HeartbeatCanariesAnnotation carries the canaries of a cluster (docs/design/path.md).
const HeartbeatCanariesAnnotation = "clusterset-dns.github.io/canaries"

// maxCanariesText bounds the text of the canaries that is kept, in bytes: longer ones are invalid.
const maxCanariesText = 1100

// SetCanaries writes the text of the canaries into the Lease of a renewal, whose renewTime is set. An empty text removes
// the annotation.
func SetCanaries(lease *coordinationv1.Lease, text string) {
	if text == "" {
		delete(lease.Annotations, HeartbeatCanariesAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, HeartbeatCanariesAnnotation,
		fmt.Sprintf("%s@%d", text, lease.Spec.RenewTime.UnixMicro()))
}

// CanariesOf returns the text of the canaries in a heartbeat Lease, empty if there is none. A controller that writes
// none renews the Lease and keeps the annotation, which then has another renewTime.
func CanariesOf(lease *coordinationv1.Lease) string {
	text, renewed, _ := strings.Cut(lease.Annotations[HeartbeatCanariesAnnotation], "@")
	if lease.Spec.RenewTime == nil || renewed != strconv.FormatInt(lease.Spec.RenewTime.UnixMicro(), 10) {
		return ""
	}
	return text[:min(len(text), maxCanariesText)]
}

// Canaries returns the text of the member's canaries as in its last heartbeat, and whether a heartbeat was read.
func (m *Member) Canaries() (text string, read bool) {
	m.heartbeat.mu.RLock()
	defer m.heartbeat.mu.RUnlock()
	return m.heartbeat.canaries, m.heartbeat.resourceVersion != ""
}
