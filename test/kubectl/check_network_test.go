// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"fmt"
	"strings"
	"testing"
)

var networkFaults = []fault{
	{
		name: "two clusters with one range of pods", round: "networks",
		says: []string{"pod-ranges east", "pod-ranges north", "member-ranges east", "member-ranges west"},
		do: func(t *testing.T, b *bed) {
			b.node(t, b.north, "twin", "{topology.kubernetes.io/zone: north-a}",
				strings.Split(b.pods(b.east), ",")[0])
		},
		hand: map[string]func(*testing.T, *bed){"this takes new nodes": func(t *testing.T, b *bed) {
			b.shell(t, "kubectl --context north delete node twin")
		}},
	},
	{
		name: "pods where another cluster has Services", round: "networks", says: []string{"service-ranges north"},
		do: func(t *testing.T, b *bed) {
			b.apply(t, b.west,
				"{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: wrong}, spec: {cidrs: ["+
					strings.Split(b.pods(b.north), ",")[0]+"]}}")
		},
		hand: map[string]func(*testing.T, *bed){"is in the ServiceCIDRs": func(t *testing.T, b *bed) {
			b.shell(t, "kubectl --context west delete servicecidr wrong --wait=false")
		}},
	},
}

// pods are the ranges of a cluster's pods, separated by commas.
func (b *bed) pods(c *cluster) string {
	var ranges []string
	for _, prefix := range c.Options().PodCIDRs {
		ranges = append(ranges, prefix.String())
	}
	return strings.Join(ranges, ",")
}

// node makes one with labels, and a range of pods, if any.
func (b *bed) node(t *testing.T, c *cluster, name, labels, pods string) {
	t.Helper()
	spec := "{}"
	if pods != "" {
		spec = fmt.Sprintf("{podCIDR: %[1]s, podCIDRs: [%[1]s]}", pods)
	}
	b.apply(t, c,
		fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s, labels: %s}, spec: %s}`, name, labels, spec))
}
