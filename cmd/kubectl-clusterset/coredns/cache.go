// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// NodeCaches selects the DaemonSet of NodeLocal DNSCache, as Kubernetes' manifest and most others label it.
const NodeCaches = "k8s-app=node-local-dns"

// A Cache is a DaemonSet of NodeLocal DNSCache in kube-system, which pods query instead of the cluster's DNS, and the
// ConfigMap that has its Corefile.
type Cache struct {
	DaemonSet *appsv1.DaemonSet
	ConfigMap *corev1.ConfigMap
}

// Caches are those of a cluster.
func Caches(ctx context.Context, c *cluster.Cluster) (found []Cache, err error) {
	sets, err := c.Kube.AppsV1().DaemonSets(Namespace).List(ctx, metav1.ListOptions{LabelSelector: NodeCaches})
	if err != nil {
		return nil, err
	}
	for i := range sets.Items {
		for _, volume := range sets.Items[i].Spec.Template.Spec.Volumes {
			if volume.ConfigMap == nil {
				continue
			}
			configMap, err := c.Kube.CoreV1().ConfigMaps(Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
			if err == nil && configMap.Data[Key] != "" { // else another one of its ConfigMaps
				found = append(found, Cache{DaemonSet: &sets.Items[i], ConfigMap: configMap})
			}
		}
	}
	return found, nil
}

// Corefile is that of the ConfigMap.
func (c Cache) Corefile() (*Corefile, error) {
	corefile, err := ParseCorefile(c.ConfigMap.Data[Key])
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", Namespace, c.ConfigMap.Name, err)
	}
	return corefile, nil
}

// Addresses are those at which pods of a node reach the cache of that node, and nothing else: what the server block of
// the cluster's own zone binds or, if that has variables, what the argument -localip says. There are none if the cache
// listens on all addresses of its pod, such as with a local redirect policy of Cilium.
func (c Cache) Addresses() []string {
	corefile, err := c.Corefile()
	if err != nil {
		return nil
	}
	bound := corefile.bound()
	if slices.ContainsFunc(bound, func(word string) bool { return strings.Contains(word, "__PILLAR__") }) {
		bound = nil
		for _, container := range c.DaemonSet.Spec.Template.Spec.Containers {
			bound = append(bound, localIPs(slices.Concat(container.Command, container.Args))...)
		}
	}
	var addresses []string
	for _, word := range bound {
		if address, err := netip.ParseAddr(word); err == nil && !address.IsUnspecified() && !address.IsLoopback() {
			addresses = append(addresses, address.String())
		}
	}
	return addresses
}

// bound are the addresses of the server block that Passing follows.
func (c *Corefile) bound() (words []string) {
	if block := c.clusterBlock(); block != nil {
		for _, directive := range directives(block, "bind") {
			words = append(words, arguments(directive)...)
		}
	}
	return words
}

// localIPs are the values of the flag of node-cache.
func localIPs(args []string) []string {
	for i, arg := range args {
		name, value, both := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if name != "localip" || !strings.HasPrefix(arg, "-") {
			continue
		}
		if !both && i+1 < len(args) {
			value = args[i+1]
		}
		return strings.Split(value, ",")
	}
	return nil
}
