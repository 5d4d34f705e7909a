// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// ChartCorefile is the Corefile of the chart's CoreDNS, empty if that does not exist, or may not be read.
func ChartCorefile(ctx context.Context, c *cluster.Cluster) string {
	namespace, err := ChartNamespace(ctx, c.Kube)
	if err != nil || namespace == "" {
		return ""
	}
	configMap, err := c.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, ChartName, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return configMap.Data[Key]
}
