// SPDX-License-Identifier: Apache-2.0

package member

import (
	"regexp"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// The heartbeat protocol (docs/design.md, "Heartbeat").
const (
	// HeartbeatLease is the name of the Lease that a cluster's leading controller renews in its own namespace.
	HeartbeatLease = "clusterset-dns-heartbeat"
	// HeartbeatUIDAnnotation carries the UID of the namespace kube-system, which tells clusters with the same id apart.
	HeartbeatUIDAnnotation = "clusterset-dns.github.io/kube-system-uid"
	// DrainAnnotation is "true" in the heartbeat of a drained cluster: the other clusters use its endpoints only if no other
	// cluster has a ready one.
	DrainAnnotation = "clusterset-dns.github.io/drain"
	// HeartbeatTargetsAnnotation carries the probe targets of a cluster (docs/design.md, "Path").
	HeartbeatTargetsAnnotation = "clusterset-dns.github.io/probe-targets"
	// HeartbeatExposedTargetsAnnotation carries the probe targets for clusters in other networks.
	HeartbeatExposedTargetsAnnotation = "clusterset-dns.github.io/exposed-probe-targets"
	// maxTargetsText is how many bytes of either annotation are kept: longer values are invalid.
	maxTargetsText = 1100
	// HeartbeatVersionAnnotation carries the version of the controller.
	HeartbeatVersionAnnotation = "clusterset-dns.github.io/version"
)

// A Heartbeat is the content of a member's heartbeat Lease.
type Heartbeat struct {
	// KubeSystemUID is the UID of the member's namespace kube-system, as its controller wrote it.
	KubeSystemUID string
	// Cluster is the member's id, as its controller wrote it.
	Cluster string
	// Drained reports whether the member asks to be drained.
	Drained bool
	// Version is the version of the member's controller, empty if unknown.
	Version string

	// Targets lists its probe targets for clusters in its network, ExposedTargets its probe targets for other networks.
	Targets, ExposedTargets string
	// LeaseUID is the UID of its heartbeat Lease, with which its probe targets prove their identity: only the cluster and the
	// members of its set can read it.
	LeaseUID string
	// Properties are its ClusterProperties as scope.ParseProperties parses them, empty if they are unknown. A text too long to
	// be valid is truncated.
	Properties string
}

// recent is the longest time between two reads of the Lease after which a list proves a renewal. It exceeds retry.Cap with jitter.
const recent = 30 * time.Second

// hear counts a new resourceVersion of the heartbeat Lease as a renewal, except the first, one that was listed after an absence,
// because both may be old, and an older one, which a restored etcd returns.
func (m *Member) hear(lease *coordinationv1.Lease, listed bool) {
	has := lease.Annotations
	is := Heartbeat{
		KubeSystemUID: uidOf(lease), Cluster: cut(ptr.Deref(lease.Spec.HolderIdentity, ""), maxWord), Drained: has[DrainAnnotation] == "true",
		Version: cut(has[HeartbeatVersionAnnotation], maxWord), LeaseUID: cut(string(lease.UID), maxWord),
		Targets:        cut(has[HeartbeatTargetsAnnotation], maxTargetsText),
		ExposedTargets: cut(has[HeartbeatExposedTargetsAnnotation], maxTargetsText),
		Properties:     cut(has[scope.PropertiesAnnotation], scope.MaxBytes+1),
	}
	m.mu.Lock()
	defer m.mu.Unlock() // both watches read heartbeats: the Tracker must get them in this order
	order, err := resourceversion.CompareResourceVersion(lease.ResourceVersion, m.resourceVersion)
	now := m.set.config.Clock.Now()
	renewed := m.resourceVersion != "" && (!listed || now.Sub(m.looked) < recent) && lease.ResourceVersion != m.resourceVersion && (err != nil || order > 0)
	m.resourceVersion, m.looked = lease.ResourceVersion, now
	m.set.config.Tracker.LeaseRead(m, is, renewed)
}

// uidText matches harmless UIDs: administrators copy a command that contains the UID.
var uidText = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// uidOf returns the KubeSystemUID of a heartbeat Lease, empty if it has none.
func uidOf(lease *coordinationv1.Lease) string {
	return uidText.FindString(lease.Annotations[HeartbeatUIDAnnotation])
}

// maxWord bounds the cluster id and the version in a heartbeat, in bytes.
const maxWord = 128

// cut returns the beginning of a text, of at most that many bytes.
func cut(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }
