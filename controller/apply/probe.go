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

// TrySlice returns the error that the API server has for an EndpointSlice of
// the cluster in a namespace, by a dry run: none is made. The slice has the
// labels of one that publishes a service, so that admission rules which select
// by label treat it likewise.
func TrySlice(ctx context.Context, client kubernetes.Interface, namespace, cluster string) error {
	_, err := client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "clusterset-dns-probe-",
			Labels: map[string]string{
				export.LabelSliceManagedBy: export.Manager,
				export.LabelSourceCluster:  cluster,
				export.LabelService:        "clusterset-dns-probe",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return fmt.Errorf("a dry run in namespace %s: %w", namespace, err)
	}
	return nil
}

// A PublishError tells that a slice by which the local cluster exports a
// service is not as it should be.
type PublishError struct{ err error }

// Error implements error.
func (e *PublishError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *PublishError) Unwrap() error { return e.err }
