// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// maxPods bounds the pods whose addresses confinement compares.
const maxPods = 500

// confinement are the pod ranges of the nodes and, if clusters of other networks reach the nodes, the networks of /24 or /64
// around their addresses. It is an error if nodes have no pod ranges, or if pods have other addresses, because the CNI assigns
// them.
func confinement(ctx context.Context, c *cluster.Cluster, exposed bool) (ranges []netip.Prefix, err error) {
	nodes, err := c.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range nodes.Items {
		ranges = AddPrefixes(ranges, nodes.Items[i].Spec.PodCIDRs...)
	}
	if len(ranges) == 0 {
		return nil, errors.New("its nodes have no spec.podCIDRs")
	}
	pods, err := c.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: maxPods})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, ip := range pod.Status.PodIPs {
			address, err := netip.ParseAddr(ip.IP)
			if err == nil && !pod.Spec.HostNetwork && !Covers(ranges, netip.PrefixFrom(address, address.BitLen())) {
				return nil, fmt.Errorf("pod %s/%s has the address %s, outside of the podCIDRs of the nodes", pod.Namespace, pod.Name, ip.IP)
			}
		}
	}
	for i := range nodes.Items {
		for _, each := range nodes.Items[i].Status.Addresses {
			if address, err := netip.ParseAddr(each.Address); err == nil && exposed {
				ranges = AddPrefixes(ranges, netip.PrefixFrom(address, map[bool]int{true: 24, false: 64}[address.Is4()]).String())
			}
		}
	}
	return ranges, nil
}

// AddPrefixes adds the prefixes that are not in others, and ignores invalid ones.
func AddPrefixes(prefixes []netip.Prefix, texts ...string) []netip.Prefix {
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil && !Covers(prefixes, prefix) {
			prefixes = append(prefixes, prefix.Masked())
		}
	}
	return prefixes
}

// Covers reports whether one of the prefixes, which are masked, contains all of another one.
func Covers(prefixes []netip.Prefix, other netip.Prefix) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Bits() <= other.Bits() && p.Contains(other.Addr()) })
}

// confined is the annotation cidrs with ranges added, empty for none. What an administrator set stays.
func confined(annotation string, ranges []netip.Prefix) string {
	prefixes := AddPrefixes(nil, strings.FieldsFunc(annotation, func(r rune) bool { return r == ',' || r == ' ' })...)
	for _, each := range ranges {
		prefixes = AddPrefixes(prefixes, each.String())
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(prefixes), " ", ","), "[]")
}
