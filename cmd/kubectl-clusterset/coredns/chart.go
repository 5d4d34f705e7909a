// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// ChartName is that of the objects of the chart's CoreDNS.
const ChartName = "clusterset-coredns"

// ChartNamespace is the namespace of the CoreDNS of the chart, of the controller's cluster set, empty if there is none. Its
// ClusterRoleBinding, which only administrators can write, names it.
func ChartNamespace(ctx context.Context, c *cluster.Cluster) (string, error) {
	is, _ := c.Identify(ctx) // of the default set, if that is unknown
	binding, err := c.Kube.RbacV1().ClusterRoleBindings().Get(ctx, strings.TrimSuffix(ChartName+"-"+string(is.Set), "-"),
		metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, subject := range binding.Subjects {
		if subject.Name == ChartName {
			return subject.Namespace, nil
		}
	}
	return "", nil
}

// ChartCorefile is the Corefile of the chart's CoreDNS, empty if that does not exist, or may not be read.
func ChartCorefile(ctx context.Context, c *cluster.Cluster) string {
	namespace, err := ChartNamespace(ctx, c)
	if err != nil || namespace == "" {
		return ""
	}
	configMap, err := c.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, ChartName, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return configMap.Data[Key]
}

// chart is the Service of the chart's CoreDNS.
func (o Options) chart(ctx context.Context) (*corev1.Service, error) {
	namespace, err := ChartNamespace(ctx, o.Cluster)
	var service *corev1.Service
	if err == nil && namespace != "" {
		service, err = o.Cluster.Kube.CoreV1().Services(namespace).Get(ctx, ChartName, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err), err == nil && namespace == "":
		return nil, errors.New("no CoreDNS of clusterset-dns to forward to: install the chart with --set coredns.enabled=true")
	case err != nil:
		return nil, fmt.Errorf("looking for the CoreDNS of the chart: %w", err)
	}
	return service, nil
}
