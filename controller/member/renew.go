// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	documents "github.com/clusterset-dns/clusterset-dns/controller/state"
)

// renewToken renews the token in the member's Secret until the context ends: at half of its life it requests another token of
// the same ServiceAccount with the same lifetime. It renews only tokens whose account was made for one reader. A new token
// changes the Secret, which replaces the connection.
func (m *Member) renewToken(ctx context.Context) {
	credential := m.registration.Load().credential
	has, ok := ParseToken(credential.Config.BearerToken)
	if !ok || !has.renewable() || has.Namespace != credential.Namespace || m.held() == nil {
		return
	}
	logger, clock := klog.FromContext(ctx), m.set.config.Clock
	// Wait at least minRetry: if the member's clock is behind, even a new token is past half of its life.
	for wait := has.Issued.Add(has.length() / 2).Sub(clock.Now()); ; wait = has.length() / 40 {
		select {
		case <-ctx.Done():
			return
		case <-clock.After(max(wait, minRetry)):
		}
		// Even after a success: if another writer reverts the Secret, the next attempt renews the token again.
		if err := m.replaceToken(ctx, has, credential.Config.BearerToken); err != nil && ctx.Err() == nil {
			logger.Error(errors.New(documents.Safe(err.Error())), "Cannot renew the token of the member; before it expires, run kubectl clusterset join",
				"expires", has.Expires)
		}
	}
}

// held returns the Secret that makes the cluster a member, nil for a candidate of a Source, whose Secrets belong to another system.
func (m *Member) held() *corev1.Secret {
	candidate := m.Candidate()
	if secret, ok := candidate.Object.(*corev1.Secret); ok && candidate.Source == "" {
		return secret
	}
	return nil
}

// replaceToken requests a token for the account of has, and replaces token with it in the member's Secret.
func (m *Member) replaceToken(ctx context.Context, has Token, token string) error {
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(max(has.length(), minLife) / time.Second))},
	}
	made, err := m.core.ServiceAccounts(has.Namespace).CreateToken(asking, has.Account, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("request a token of ServiceAccount %s of the member: %w", has.Account, err)
	}
	if is, ok := ParseToken(made.Status.Token); !ok || !is.replaces(has) {
		return fmt.Errorf("the member answered with a token that is not of ServiceAccount %s, or ends no later", has.Account)
	}
	held := m.held()
	if held == nil || !bytes.Contains(held.Data[KubeconfigKey], []byte(token)) {
		return nil // the Secret has another token: a connection with it follows, or its problem is reported
	}
	kubeconfig, err := ReplaceToken(held.Data[KubeconfigKey], made.Status.Token)
	if err != nil {
		return err
	}
	changed := held.DeepCopy()
	changed.Data[KubeconfigKey] = kubeconfig
	if err := m.set.config.SaveSecret(asking, changed); err != nil {
		return fmt.Errorf("write the new token to Secret %s: %w", klog.KObj(held), err)
	}
	klog.FromContext(ctx).Info("Renewed the token of the member", "secret", klog.KObj(held))
	return nil
}

// ReplaceToken returns an equivalent kubeconfig with another token for its current user.
func ReplaceToken(kubeconfig []byte, token string) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, errNotKubeconfig
	}
	var user *clientcmdapi.AuthInfo
	if context := config.Contexts[config.CurrentContext]; context != nil {
		user = config.AuthInfos[context.AuthInfo]
	}
	if user == nil || user.Token == "" {
		return nil, errors.New("the current user of the kubeconfig has no token to replace")
	}
	user.Token = token
	return clientcmd.Write(*config)
}
