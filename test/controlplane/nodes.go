// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// createNodes creates a ready node for each zone of the options.
func (c *Cluster) createNodes(ctx context.Context) error {
	for i := range c.options.Zones {
		node := c.node(i)
		if _, err := c.Client().CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
	}
	return nil
}

// node returns the i-th node: it has its part of the cluster's pod ranges, and capacity for any pod.
func (c *Cluster) node(i int) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1k"),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   resource.MustParse("100k"),
	}
	name := fmt.Sprintf("%s-%d", c.options.Name, i)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:     name,
			corev1.LabelOSStable:     "linux",
			corev1.LabelArchStable:   "amd64",
			corev1.LabelTopologyZone: c.options.Zones[i],
		}},
		Status: corev1.NodeStatus{
			Capacity:    room,
			Allocatable: room,
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}},
			Phase:       corev1.NodeRunning,
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for family, pods := range c.options.PodCIDRs {
		share := part(pods, i)
		from := share
		if c.options.NodeCIDRs != nil {
			from = part(c.options.NodeCIDRs[family], i)
		}
		node.Spec.PodCIDRs = append(node.Spec.PodCIDRs, share.String())
		node.Status.Addresses = append(node.Status.Addresses,
			corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: nodeAddress(from).String()})
	}
	node.Spec.PodCIDR = node.Spec.PodCIDRs[0]
	return node
}

// SetNodeReady sets the condition Ready of a node, as its kubelet would.
func (c *Cluster) SetNodeReady(ctx context.Context, name string, ready bool) error {
	_, err := c.Client().CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType,
		conditions(ready, string(corev1.NodeReady)), metav1.PatchOptions{}, "status")
	return err
}

// SetPodReady sets the condition Ready of a pod, as its kubelet would after a readiness probe.
func (c *Cluster) SetPodReady(ctx context.Context, namespace, name string, ready bool) error {
	_, err := c.Client().CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType,
		conditions(ready, string(corev1.PodReady), string(corev1.ContainersReady)), metav1.PatchOptions{}, "status")
	return err
}

// conditions returns a patch of a status that sets some conditions.
func conditions(to bool, kinds ...string) []byte {
	var all []string
	for _, kind := range kinds {
		all = append(all, fmt.Sprintf(`{"type":%q,"status":%q,"lastTransitionTime":%q}`, kind,
			map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[to],
			time.Now().UTC().Format(time.RFC3339)))
	}
	return []byte(`{"status":{"conditions":[` + strings.Join(all, ",") + `]}}`)
}

// nodeAddress returns the last but one address of a node's range, far from those of pods.
func nodeAddress(share netip.Prefix) netip.Addr {
	address := share.Addr().AsSlice()
	for i := share.Bits() / 8; i < len(address); i++ {
		address[i] = 0xff
	}
	last, _ := netip.AddrFromSlice(address)
	return last.Prev()
}

// part returns the i-th of the 256 parts of a range whose length is in whole bytes.
func part(of netip.Prefix, i int) netip.Prefix {
	address := of.Masked().Addr().AsSlice()
	address[of.Bits()/8] = byte(i)
	first, _ := netip.AddrFromSlice(address)
	return netip.PrefixFrom(first, of.Bits()+8)
}
