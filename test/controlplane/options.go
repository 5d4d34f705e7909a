// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"net/netip"
	"sync/atomic"
)

// Options says what cluster to start. The zero value with a Name is a single-stack IPv4 cluster without nodes, with the CRDs
// of the Multi-Cluster Services API.
type Options struct {
	// Name names the cluster: in its nodes, its kubeconfigs, its logs. A DNS label.
	Name string
	// DualStack has the default ranges in IPv6, too.
	DualStack bool
	// PodCIDRs are the ranges of pod addresses, one for each family. By default each
	// cluster of this process gets ranges of its own, so that clusters form a flat network. The length of these and of
	// NodeCIDRs is in whole bytes: the next byte is the number of a node.
	PodCIDRs []netip.Prefix
	// NodeCIDRs are the ranges of node addresses, one for each of PodCIDRs. By default nodes have addresses of those.
	NodeCIDRs []netip.Prefix
	// ServiceCIDRs are the ranges of Services' cluster IPs, one for each family. The defaults of clusters differ, too.
	ServiceCIDRs []netip.Prefix
	// Zones gives each node its zone (label topology.kubernetes.io/zone): there are as many nodes as zones. Without any,
	// kube-scheduler does not run. No pod becomes ready unless test/kubelet plays the nodes.
	Zones []string
	// WithoutCRDs leaves out the Multi-Cluster Services API, of which all is installed otherwise.
	WithoutCRDs bool
	// APIServerArgs are appended to the API server's command line.
	APIServerArgs []string
}

// complete returns the options with defaults in the place of what is empty.
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

// ranges are 10.<second>.0.0/16 and, with two families, fd00:<second>:: with as many bits.
func (o Options) ranges(second byte, bits int) []netip.Prefix {
	all := []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, second}), 16)}
	if o.DualStack {
		all = append(all, netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0, 0, second}), bits))
	}
	return all
}

// slotCount is how many clusters that start one after the other have default ranges that differ.
const slotCount = 96

// started counts the clusters that this process started.
var started atomic.Int64
