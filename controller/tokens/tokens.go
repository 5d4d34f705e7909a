// SPDX-License-Identifier: Apache-2.0

// Package tokens renews the tokens by which other clusters read this one, and keeps those by which this one reads others.
// docs/operate/credentials.md describes both sides.
package tokens

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/rotation"
)

// Interval is the time between two passes of an Issuer, and requestTimeout bounds one.
const (
	Interval       = time.Minute
	requestTimeout = 30 * time.Second
)

// An Issuer keeps a token that does not end soon for each ServiceAccount of a reader, in a Secret beside it.
type Issuer struct {
	Client kubernetes.Interface
	// Namespace is that of the controller, the ServiceAccounts and the Secrets.
	Namespace string
	// Lifetime is requested. The API server may grant less.
	Lifetime time.Duration
	Clock    clock.WithTicker
}

// Run renews tokens until the context ends.
func (i *Issuer) Run(ctx context.Context) {
	ticker := i.Clock.NewTicker(Interval)
	defer ticker.Stop()
	var before string
	for {
		err := i.Pass(ctx)
		if ctx.Err() != nil {
			return
		}
		now := ""
		if err != nil {
			now = err.Error()
		}
		if now != before && err != nil {
			klog.FromContext(ctx).Error(err, "Cannot renew the tokens of readers")
		}
		before = now
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// Pass renews the tokens of which half of the life has passed. A failure for one reader does not affect the others.
func (i *Issuer) Pass(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	accounts, err := i.Client.CoreV1().ServiceAccounts(i.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: rotation.ReaderLabel})
	if err != nil {
		return fmt.Errorf("list the ServiceAccounts of readers: %w", err)
	}
	if len(accounts.Items) == 0 {
		return nil
	}
	list, err := i.Client.CoreV1().Secrets(i.Namespace).List(ctx, metav1.ListOptions{LabelSelector: rotation.TokenLabel})
	if err != nil {
		return fmt.Errorf("list the tokens of readers: %w", err)
	}
	secrets := map[string]*corev1.Secret{}
	for j := range list.Items {
		secrets[list.Items[j].Name] = &list.Items[j]
	}
	var wrong []error
	for j := range accounts.Items {
		account := &accounts.Items[j]
		if err := i.renew(ctx, account, secrets[rotation.Secret(account.Name)]); err != nil {
			wrong = append(wrong, fmt.Errorf("ServiceAccount %s: %w", account.Name, err))
		}
	}
	return errors.Join(wrong...)
}

// renew renews the token of one account if it is due. secret holds the present one, nil for none.
func (i *Issuer) renew(ctx context.Context, account *corev1.ServiceAccount, secret *corev1.Secret) error {
	reader := account.Labels[rotation.ReaderLabel]
	if account.Name != rotation.Account(reader) {
		// The token of any other account must not be readable in a Secret.
		return fmt.Errorf("the label %s=%s does not match its name: use the name %s, or remove the label",
			rotation.ReaderLabel, reader, rotation.Account(reader))
	}
	if secret != nil && owned(secret, account) {
		held, known := rotation.Parse(string(secret.Data[rotation.TokenKey]))
		if !rotation.Due(held, known, account.Name, i.Clock.Now()) {
			return nil
		}
	}
	made, err := i.Client.CoreV1().ServiceAccounts(i.Namespace).CreateToken(ctx, account.Name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: ptr.To(int64(i.Lifetime / time.Second)),
		}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("request a token: %w", err)
	}
	desired := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: rotation.Secret(account.Name), Namespace: i.Namespace,
			Labels: map[string]string{rotation.TokenLabel: reader, export.LabelManagedBy: export.Manager},
			// The Secret is deleted with the account.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID,
			}},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{rotation.TokenKey: []byte(made.Status.Token)},
	}
	secrets := i.Client.CoreV1().Secrets(i.Namespace)
	if secret == nil {
		_, err = secrets.Create(ctx, desired, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = fmt.Errorf("a Secret %s without the label %s exists: delete it: %w", desired.Name, rotation.TokenLabel, err)
		}
	} else {
		changed := secret.DeepCopy()
		changed.OwnerReferences, changed.Data = desired.OwnerReferences, desired.Data
		_, err = secrets.Update(ctx, changed, metav1.UpdateOptions{}) // a conflict is retried by the next pass
	}
	if err != nil {
		return fmt.Errorf("write its token: %w", err)
	}
	klog.FromContext(ctx).Info("Renewed the token of a reader", "reader", reader, "expires", made.Status.ExpirationTimestamp)
	return nil
}

func owned(secret *corev1.Secret, account *corev1.ServiceAccount) bool {
	return len(secret.OwnerReferences) == 1 && secret.OwnerReferences[0].UID == account.UID
}

// Keep returns what writes a Secret of a member with a renewed token. The API server refuses it if the Secret has changed
// since it was read.
func Keep(client kubernetes.Interface) func(context.Context, *corev1.Secret) error {
	return func(ctx context.Context, secret *corev1.Secret) error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		_, err := client.CoreV1().Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{})
		return err
	}
}
