// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Credential returns what writes the Secret of a member with a renewed token. The API server refuses it if the Secret has
// changed since it was read, or if no Role allows the controller to update this Secret, as join creates for each.
func Credential(client kubernetes.Interface) func(context.Context, *corev1.Secret) error {
	return func(ctx context.Context, secret *corev1.Secret) error {
		_, err := client.CoreV1().Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{})
		return err
	}
}
