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

// maxPods bounds the pods whose addresses Ranges compares.
const maxPods = 500

// Ranges returns the pod ranges of the nodes of a cluster, and the addresses by which other networks reach the nodes. The pod
// ranges are unknown, which is an error, if nodes have none, or if pods have other addresses, because the CNI assigns them.
func Ranges(ctx context.Context, c *cluster.Cluster) (pods, nodes []netip.Prefix, err error) {
	list, err := c.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	for i := range list.Items {
		pods = AddPrefixes(pods, list.Items[i].Spec.PodCIDRs...)
		var texts []string
		for _, each := range list.Items[i].Status.Addresses {
			texts = append(texts, each.Address)
		}
		if text := list.Items[i].Annotations[cluster.AddressAnnotation]; text != "" { // in their place
			texts = strings.Split(text, ",")
		}
		for _, text := range texts {
			if address, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil {
				nodes = append(nodes, netip.PrefixFrom(address, address.BitLen()))
			}
		}
	}
	if len(pods) == 0 {
		return nil, nodes, errors.New("its nodes have no spec.podCIDRs")
	}
	running, err := c.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: maxPods})
	if err != nil {
		return nil, nodes, err
	}
	for i := range running.Items {
		pod := &running.Items[i]
		for _, ip := range pod.Status.PodIPs {
			address, err := netip.ParseAddr(ip.IP)
			if err == nil && !pod.Spec.HostNetwork && !Covers(pods, netip.PrefixFrom(address, address.BitLen())) {
				return nil, nodes, fmt.Errorf("pod %s/%s has the address %s, outside of the podCIDRs of the nodes", pod.Namespace, pod.Name, ip.IP)
			}
		}
	}
	return pods, nodes, nil
}

// confinement returns the pod ranges and, if clusters of other networks reach the nodes, the /24 or /64 of each node address.
func confinement(ctx context.Context, c *cluster.Cluster, exposed bool) ([]netip.Prefix, error) {
	ranges, nodes, err := Ranges(ctx, c)
	if err != nil || !exposed {
		return ranges, err
	}
	for _, node := range nodes {
		ranges = AddPrefixes(ranges, netip.PrefixFrom(node.Addr(), map[bool]int{true: 24, false: 64}[node.Addr().Is4()]).String())
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

// confined returns the annotation cidrs with ranges added, empty for none. Ranges that an administrator set stay.
func confined(annotation string, ranges []netip.Prefix) string {
	prefixes := AddPrefixes(nil, strings.FieldsFunc(annotation, func(r rune) bool { return r == ',' || r == ' ' })...)
	for _, each := range ranges {
		prefixes = AddPrefixes(prefixes, each.String())
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(prefixes), " ", ","), "[]")
}
