// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"net/netip"
	"sync/atomic"
)

// Options describe a cluster. The zero value with a Name is a single-stack IPv4 cluster without nodes, with the CRDs of
// the Multi-Cluster Services API.
type Options struct {
	// Name is the name of the cluster in its nodes, kubeconfigs and logs. It must be a DNS label.
	Name string
	// DualStack adds default IPv6 ranges.
	DualStack bool
	// PodCIDRs are the ranges of pod addresses, one per family. By default each cluster of this process gets unique
	// ranges, so that clusters form a flat network. The length of these and of NodeCIDRs is in whole bytes: the next
	// byte is the number of a node.
	PodCIDRs []netip.Prefix
	// NodeCIDRs are the ranges of node addresses, one for each of PodCIDRs. By default, nodes have addresses from PodCIDRs.
	NodeCIDRs []netip.Prefix
	// ServiceCIDRs are the ranges of cluster IPs, one per family. Their defaults are unique per cluster, too.
	ServiceCIDRs []netip.Prefix
	// Zones has the zone (label topology.kubernetes.io/zone) of each node: there are as many nodes as zones. Without
	// zones, kube-scheduler does not run. Pods become ready only if test/kubelet simulates the nodes.
	Zones []string
	// WithoutCRDs omits the CRDs of the Multi-Cluster Services API.
	WithoutCRDs bool
	// APIServerArgs are appended to the API server's command line.
	APIServerArgs []string
}

// complete returns the options with defaults for empty fields.
func (o Options) complete() Options {
	slot := byte((started.Add(1) - 1) % slotCount)
	if o.PodCIDRs == nil {
		o.PodCIDRs = o.ranges(64+slot, 48)
	}
	if o.ServiceCIDRs == nil {
		o.ServiceCIDRs = o.ranges(160+slot, 112)
	}
	return o
}

// ranges returns 10.<second>.0.0/16 and, for dual-stack, fd00:<second>:: with the same number of bits.
func (o Options) ranges(second byte, bits int) []netip.Prefix {
	all := []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, second}), 16)}
	if o.DualStack {
		all = append(all, netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0, 0, second}), bits))
	}
	return all
}

// slotCount is the number of clusters that can be started in a row with different default ranges.
const slotCount = 96

// started counts the clusters that this process started.
var started atomic.Int64
