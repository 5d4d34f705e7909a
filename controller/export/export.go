// SPDX-License-Identifier: Apache-2.0

// Package export has the validated view of one service that a cluster exports, and the snapshot that carries this view to
// other clusters. It also defines the names of derived Services and slices, labels and annotations, the reasons why an
// export is invalid, and a compact form of slices in memory.
//
// The package is pure: values in, values out, the same answer for the same
// input in any order. docs/design.md#snapshot describes the snapshot.
package export

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// A View is one cluster's export of one service: its spec and its endpoints, before any merge. A view and everything it
// points to are immutable.
type View struct {
	// Cluster is the id of the exporting cluster. It comes from the credential, not from the data that was read.
	Cluster string
	// Service is the namespace and name of the Service, ServiceExport and ServiceImport, which are equal in all
	// clusters.
	Service types.NamespacedName
	// Spec is nil if and only if the view is Absent.
	Spec *Spec
	// Slices are sorted by their unique names. There is at least one; without endpoints it is empty.
	Slices []Slice
	// Exposed are the slices for clusters of other networks, only in local views: they are published, and never merged.
	Exposed []Slice
	// NodePorts reports whether they need the Service with node ports that the controller derives.
	NodePorts bool
	// Memory is for the next pass over a local export, which is due After; 0 means that none is due.
	Memory Memory
	After  time.Duration
}

// A Memory is what a pass over an export remembers for later passes. It is immutable.
type Memory struct {
	// ReadySince has the time since which each node has a ready pod; zero means for long. In Exporter.Before, nil means
	// for long on all nodes, as a new leader assumes; in a View, it means that nodes do not expose the export.
	ReadySince map[string]time.Time
	// Names are the DNS names of the load balancers or Gateways that expose the export; for Gateways, also the empty name.
	Names []string
}

// Absent reports whether the ServiceExport exists without its Service. Such an export contributes nothing to an import
// but keeps an existing one, so that its IP does not change when a Service is replaced. Its single slice has neither
// targets nor endpoints.
func (v *View) Absent() bool { return v.Spec == nil }

// A Spec has the properties of an export that apply to the whole service (KEP-1645, "Constraints and Conflict
// Resolution"). Its tags are the format of a snapshot.
type Spec struct {
	// Created is the creationTimestamp of the ServiceExport in UTC and whole seconds, from June 2014 to the end of
	// 9999. The oldest export wins conflicts between clusters of the same rank.
	Created time.Time `json:"created"`
	// Type is Headless for a Service with clusterIP None, else ClusterSetIP.
	Type v1beta1.ServiceImportType `json:"type"`
	// Ports are the ports of the Service in its order; Protocol is never empty.
	Ports []Port `json:"ports,omitempty"`
	// IPFamilies are the families of the Service in its order: one or two.
	IPFamilies []corev1.IPFamily `json:"ipFamilies"`
	// SessionAffinity is never empty; SessionAffinityConfig is nil if it is None, and has the timeout otherwise.
	SessionAffinity       corev1.ServiceAffinity        `json:"sessionAffinity,omitempty"`
	SessionAffinityConfig *corev1.SessionAffinityConfig `json:"sessionAffinityConfig,omitempty"`
	// InternalTrafficPolicy is never empty: nil in the Service means Cluster.
	InternalTrafficPolicy corev1.ServiceInternalTrafficPolicy `json:"internalTrafficPolicy,omitempty"`
	// TrafficDistribution is empty if the Service has none.
	TrafficDistribution string `json:"trafficDistribution,omitempty"`
	// Labels and Annotations are the exported ones of the ServiceExport, without reserved keys.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Overloaded reports whether the cluster is overloaded for the service.
	Overloaded bool `json:"overloaded,omitempty"`
}

// A Port is one port of an exported Service.
type Port struct {
	// Name is a DNS label. It may be empty if the Service has a single port.
	Name string `json:"name,omitempty"`
	// Protocol is TCP, UDP or SCTP.
	Protocol corev1.Protocol `json:"protocol"`
	// Number is the Service's port, 1 to 65535.
	Number int32 `json:"port"`
	// AppProtocol is empty if the Service has none.
	AppProtocol string `json:"appProtocol,omitempty"`
}

// A Slice has the endpoints of one EndpointSlice of the exporting cluster. Its tags are the format of a snapshot.
type Slice struct {
	// Name is the name of the slice that the exporting cluster publishes.
	Name string `json:"name"`
	// AddressType is IPv4 or IPv6.
	AddressType discoveryv1.AddressType `json:"-"`
	// Targets map ports of the Service to target ports, in the order of the ports. The endpoints do not serve ports of the
	// Service without a target.
	Targets []Target `json:"targets,omitempty"`
	// Endpoints have the conditions of the exporting cluster, all three set, and no hints. Endpoints of other clusters
	// have no nodeName and no targetRef.
	Endpoints []discoveryv1.Endpoint `json:"-"`
	// Clusters is the valid cluster selector (see scope.ParseAbsolute) of the clusters that the slice is for, empty for
	// all. While an export changes, its slices may have different selectors.
	Clusters string `json:"-"`
	// Network is the network of the exporting cluster, empty for the default one. The slice is for clusters of this network,
	// with addresses of pods, or if Exposed is set for clusters of all others, with the addresses of that Exposure.
	Network string   `json:"network,omitempty"`
	Exposed Exposure `json:"exposed,omitempty"`
	// TriggerTime is when the endpoints changed in the source cluster (RFC 3339), empty if unknown.
	TriggerTime string `json:"-"`
}

// A Target is the target port of the endpoints of a slice for one port of a Service.
type Target struct {
	// Protocol and Number identify the port of the Service.
	Protocol corev1.Protocol `json:"protocol"`
	Number   int32           `json:"port"`
	// Port is the number that the endpoints listen on, 1 to 65535.
	Port int32 `json:"target"`
}

// A Node has the properties of a local node that exposed services need.
type Node struct {
	// Addresses are the addresses by which other networks reach it, at most one per family. Own are the IP addresses in
	// its status. All are in canonical form.
	Addresses, Own []string
	// Zone is empty if it has none.
	Zone string
	// Ready is the node's condition.
	Ready bool
}

// A Frontend is a load balancer or Gateway to which clients in other networks connect instead of pods.
type Frontend struct {
	// Addresses are IP addresses and names.
	Addresses []string
	// Targets map ports of the Service to its ports.
	Targets []Target
}

// An Exporter has the state of the local cluster on which its exports depend.
type Exporter struct {
	// Cluster is its id.
	Cluster string
	// Network is the network of its pods: see scope.NetworkProperty.
	Network string
	// Expose is the Exposure of the exports without AnnotationExpose. The controller derives Services with node ports
	// only if it is ExposeNodePort.
	Expose Exposure
	// NodePorts is the existing Service with the name NodePortServiceName, nil for none.
	NodePorts *corev1.Service
	// Node returns a node of the cluster, and whether it exists. It is nil before the nodes are known.
	Node func(name string) (Node, bool)
	// Before is View.Memory of the previous pass, and Now the time. A node that gets its first ready pod stays unready
	// for settle: its kube-proxy does not serve the pod yet.
	Before Memory
	Now    time.Time
	// HostPorts returns the ports of a pod's containers. The error is ErrPodsForbidden if the controller may not read them.
	HostPorts func(pod corev1.ObjectReference) ([]corev1.ContainerPort, error)
	// Resolve returns the addresses of a name of a load balancer, and whether they are known.
	Resolve func(name string) ([]netip.Addr, bool)
	// Gateways returns the Frontends of a Service that are Gateways, and whether they are known.
	Gateways func(service types.NamespacedName) ([]Frontend, bool)

	published []*discoveryv1.EndpointSlice
}
