// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// AskIPFamilies returns the IP families of Services, the preferred one first. It creates a dual-stack Service in a dry
// run. It is for API servers without ServiceCIDRs.
func AskIPFamilies(ctx context.Context, client kubernetes.Interface, namespace string) ([]corev1.IPFamily, error) {
	service, err := client.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "clusterset-dns-families-"},
		Spec: corev1.ServiceSpec{
			Type:           corev1.ServiceTypeClusterIP,
			IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
			Ports:          []corev1.ServicePort{{Port: 80}},
		},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, err
	}
	return service.Spec.IPFamilies, nil
}
