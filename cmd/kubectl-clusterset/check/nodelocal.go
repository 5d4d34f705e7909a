// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
)

// nodeCaches returns the ConfigMaps with the Corefiles of NodeLocal DNSCache, which pods query instead of the cluster's
// DNS. The DaemonSets have the label of Kubernetes' manifest.
func nodeCaches(ctx context.Context, c *cluster.Cluster) (found []corev1.ConfigMap) {
	sets, err := c.Kube.AppsV1().DaemonSets(coredns.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=node-local-dns"})
	if err != nil {
		return nil
	}
	for i := range sets.Items {
		for _, volume := range sets.Items[i].Spec.Template.Spec.Volumes {
			if volume.ConfigMap == nil {
				continue
			}
			configMap, err := c.Kube.CoreV1().ConfigMaps(coredns.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
			if err == nil && configMap.Data[coredns.Key] != "" { // else another one of its ConfigMaps
				found = append(found, *configMap)
			}
		}
	}
	return found
}

var nodeLocalChecks = []Check{{
	Name: "node-local-dns", About: "the Corefile of NodeLocal DNSCache passes the zone on to the cluster's DNS",
	run: func(s *Set, c *Cluster) (found []problem) {
		for i := range c.NodeCaches {
			cache := &c.NodeCaches[i]
			parsed, err := coredns.ParseCorefile(cache.Data[coredns.Key])
			if err != nil || parsed.Passes(s.Zone) {
				continue
			}
			found = append(found, wrong(fmt.Sprintf("Add this server block with `%s`.\n%s",
				c.kubectl("-n %s edit configmap %s", coredns.Namespace, cache.Name), passing(parsed, s.Zone)),
				"Pods cannot resolve names in %s: NodeLocal DNSCache answers their queries on each node, and its Corefile in "+
					"ConfigMap %s/%s has no server block for the zone.", s.Zone, coredns.Namespace, cache.Name))
		}
		return found
	},
}}

// passing is the server block with which a cache passes a zone on, at the addresses of that of the cluster's own zone.
func passing(cache *coredns.Corefile, zone string) string {
	listen, servers := cache.ClusterDNS()
	bind, to := "", "<address of the cluster's DNS>"
	if servers != nil {
		to = strings.Join(servers, " ")
	}
	if listen != nil {
		bind = "\n    bind " + strings.Join(listen, " ")
	}
	return fmt.Sprintf(`%s:53 {
    errors
    cache {
        success 9984 5
        denial 9984 1
    }
    reload%s
    forward . %s {
        force_tcp
    }
}`, strings.TrimSuffix(zone, "."), bind, to)
}
