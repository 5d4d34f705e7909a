// SPDX-License-Identifier: Apache-2.0

// Package export holds one cluster's validated view of one service that it
// exports, and the snapshot by which that view travels between clusters. Names of
// derived Services and slices, keys, limits of a member and the reasons of an export
// that is not valid are here, too.
//
// The package is pure: values in, values out, the same answer for the same
// input in any order. docs/design/snapshot.md describes the snapshot.
package export

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// A View is what one cluster says of one service that it exports: its spec
// and its endpoints, as they were before any merge. It is immutable once made:
// nobody changes it or anything it points to, so that it may be shared.
type View struct {
	// Cluster is the id of the exporting cluster, stamped by whoever made the
	// view from where it was read, never copied from what was read.
	Cluster string
	// Service is the namespace and name of the Service, ServiceExport and
	// ServiceImport, which are the same in all clusters of the set.
	Service types.NamespacedName
	// Spec is nil if and only if the view is Absent.
	Spec *Spec
	// Slices are sorted by Name, and each Name occurs once. There is at least
	// one, which has no endpoints where the service has none.
	Slices []Slice
}

// Absent reports whether the ServiceExport exists and its Service does not. Such
// an export contributes nothing to an import, and keeps one that exists: its IP
// must not change because a Service is replaced. Its one slice has neither
// targets nor endpoints.
func (v *View) Absent() bool { return v.Spec == nil }

// A Spec is the part of an export that its cluster decides once for the whole
// service (KEP-1645, "Constraints and Conflict Resolution").
type Spec struct {
	// Created is the creationTimestamp of the ServiceExport in UTC and whole
	// seconds, from June 2014 to the end of 9999. The oldest export wins
	// conflicts between clusters of the same rank.
	Created time.Time
	// Type is Headless for a Service with clusterIP None, else ClusterSetIP.
	Type v1beta1.ServiceImportType
	// Ports are those of the Service in its order; Protocol is never empty.
	Ports []Port
	// IPFamilies are those of the Service in its order: one or two.
	IPFamilies []corev1.IPFamily
	// SessionAffinity is never empty; SessionAffinityConfig is nil where it is
	// None.
	SessionAffinity       corev1.ServiceAffinity
	SessionAffinityConfig *corev1.SessionAffinityConfig
	// InternalTrafficPolicy is never empty: nil in the Service means Cluster.
	InternalTrafficPolicy corev1.ServiceInternalTrafficPolicy
	// TrafficDistribution is empty where the Service has none.
	TrafficDistribution string
	// Labels and Annotations are the exported ones of the ServiceExport,
	// without keys that mean something to Kubernetes or to this project.
	Labels      map[string]string
	Annotations map[string]string
}

// A Port is one port of an exported Service.
type Port struct {
	// Name is a DNS label, or empty where the Service has a single port.
	Name string
	// Protocol is TCP, UDP or SCTP.
	Protocol corev1.Protocol
	// Number is the Service's port, 1 to 65535.
	Number int32
	// AppProtocol is empty where the Service has none.
	AppProtocol string
}

// A Slice is the endpoints of one EndpointSlice of the exporting cluster.
type Slice struct {
	// Name is the name of the slice that the exporting cluster publishes.
	Name string
	// AddressType is IPv4 or IPv6.
	AddressType discoveryv1.AddressType
	// Targets say which number the endpoints listen on for a port of the
	// Service. They are sorted by Protocol, then Number. A port of the Service
	// that has no target here is not served by these endpoints.
	Targets []Target
	// Endpoints have their own conditions, not those that a merge gave them,
	// and no hints. All three conditions are set. Those of other clusters have
	// no nodeName and no targetRef.
	Endpoints []discoveryv1.Endpoint
	// TriggerTime is the value of the annotation
	// endpoints.kubernetes.io/last-change-trigger-time that Kubernetes set in
	// the source cluster, empty if unknown.
	TriggerTime string
}

// A Target is where the endpoints of a slice listen for one port of a Service.
type Target struct {
	// Protocol and Number name the port of the Service.
	Protocol corev1.Protocol
	Number   int32
	// Port is the number that the endpoints listen on, 1 to 65535.
	Port int32
}
