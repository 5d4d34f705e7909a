// SPDX-License-Identifier: Apache-2.0

package member

import coordinationv1 "k8s.io/api/coordination/v1"

// HeartbeatCanariesAnnotation carries the canaries of a cluster (docs/design.md, "Path").
const HeartbeatCanariesAnnotation = "clusterset-dns.github.io/canaries"

// maxCanariesText bounds the text of the canaries that is kept, in bytes: longer ones are invalid.
const maxCanariesText = 1100

// CanariesOf returns the text of the canaries in a heartbeat Lease, empty if there is none.
func CanariesOf(lease *coordinationv1.Lease) string {
	text := lease.Annotations[HeartbeatCanariesAnnotation]
	return text[:min(len(text), maxCanariesText)]
}

// Canaries returns the text of the member's canaries as in its last heartbeat, and whether a heartbeat was read.
func (m *Member) Canaries() (text string, read bool) {
	m.heartbeat.mu.RLock()
	defer m.heartbeat.mu.RUnlock()
	return m.heartbeat.canaries, m.heartbeat.resourceVersion != ""
}

// CanaryKey returns what the canaries of the member prove that they know: the UID of its heartbeat Lease, which only the
// cluster and the members of its set can read.
func (m *Member) CanaryKey() string {
	m.heartbeat.mu.RLock()
	defer m.heartbeat.mu.RUnlock()
	return m.heartbeat.leaseUID
}
