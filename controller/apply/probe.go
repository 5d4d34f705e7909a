// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Probe creates an EndpointSlice of a cluster in a namespace as a dry run, and returns the API server's error. The slice
// has the labels of a published one, so that admission rules that select by label apply.
func Probe(ctx context.Context, client kubernetes.Interface, namespace, cluster string) error {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "clusterset-dns-probe-",
			Labels: map[string]string{
				export.LabelSourceCluster: cluster,
				export.LabelService:       "clusterset-dns-probe",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	export.Mark(slice)
	_, err := client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, slice, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("a dry run in namespace %s: %w", namespace, err)
	}
	return nil
}
