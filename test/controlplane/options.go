// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"net/netip"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options says what cluster to start. The zero value with a Name is a single-stack IPv4 cluster without nodes, with the CRDs
// of the Multi-Cluster Services API.
type Options struct {
	// Name names the cluster: in its nodes, its kubeconfigs, its logs. A DNS label.
	Name string
	// IPFamilies are the families of pods and Services: IPv4, which is the default, or IPv4 and IPv6.
	// They are not looked at where both PodCIDRs and ServiceCIDRs are given.
	IPFamilies []corev1.IPFamily
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
func (o Options) complete() (Options, error) {
	if problems := validation.IsDNS1123Label(o.Name); len(problems) > 0 {
		return Options{}, fmt.Errorf("start a control plane: name %q: %s", o.Name, problems[0])
	}
	if len(o.IPFamilies) == 0 {
		o.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	slot := byte((started.Add(1) - 1) % slotCount)
	pods, services := o.PodCIDRs == nil, o.ServiceCIDRs == nil
	for _, family := range o.IPFamilies {
		if pods {
			o.PodCIDRs = append(o.PodCIDRs, defaultCIDR(family, 64+slot, 48))
		}
		if services {
			o.ServiceCIDRs = append(o.ServiceCIDRs, defaultCIDR(family, 160+slot, 112))
		}
	}
	return o, nil
}

// defaultCIDR is 10.<second>.0.0/16, or fd00:<second>:: with as many bits.
func defaultCIDR(family corev1.IPFamily, second byte, bits int) netip.Prefix {
	if family == corev1.IPv6Protocol {
		return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0, 0, second}), bits)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, second}), 16)
}

// slotCount is how many clusters that start one after the other have default ranges that differ.
const slotCount = 96

// started counts the clusters that this process started.
var started atomic.Int64
