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

// A SliceProbe checks by a dry run whether EndpointSlices can be written.
type SliceProbe struct {
	Client             kubernetes.Interface
	Namespace, Cluster string
}

// Probe returns the API server's error for an EndpointSlice in the namespace. The slice has the labels of a published
// one, so that admission rules that select by label apply.
func (p SliceProbe) Probe(ctx context.Context) error {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "clusterset-dns-probe-",
			Labels: map[string]string{
				export.LabelSourceCluster: p.Cluster,
				export.LabelService:       "clusterset-dns-probe",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	export.Mark(slice)
	_, err := p.Client.DiscoveryV1().EndpointSlices(p.Namespace).Create(ctx, slice, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("a dry run in namespace %s: %w", p.Namespace, err)
	}
	return nil
}
