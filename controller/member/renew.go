// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/rotation"
)

// getsSecrets reads Secrets of a member.
type getsSecrets interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error)
}

// renewToken keeps the token of the member's Secret from ending, until the context ends: it asks the member for the next
// one at once, and again when more than half of its life has passed. It does nothing if the token is none that the member
// renews. A new token changes the Secret, which replaces the connection.
func (m *Member) renewToken(ctx context.Context, secrets getsSecrets, credential Credential) {
	if m.keep == nil || m.held() == nil {
		return
	}
	has, ok := rotation.Parse(credential.Config.BearerToken)
	if !ok || !has.Renewed() || has.Namespace != credential.Namespace {
		return
	}
	fetch := has.Fetch(rand.Float64()) //nolint:gosec // only spreads requests
	logger := klog.FromContext(ctx)
	said := ""
	for at := m.clock.Now(); ; at = m.clock.Now().Add(has.Retry()) {
		if !m.until(ctx, at) {
			return
		}
		err := m.fetchToken(ctx, secrets, has, credential.Config.BearerToken)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil: // the Secret has it; if another writer reverts that, it is repeated
			said = ""
		case errors.Is(err, errNoLater) && m.clock.Now().Before(fetch): // there is no need yet
			if !m.until(ctx, fetch) {
				return
			}
		case apierrors.IsNotFound(err) && m.clock.Now().Before(fetch): // the member may issue it soon
		case err.Error() != said:
			said = err.Error()
			logger.Error(err, "Cannot renew the token of the member; before it expires, run kubectl clusterset join",
				"expires", has.Expires)
		}
	}
}

// until waits until a time, and returns false if the context ends before.
func (m *Member) until(ctx context.Context, at time.Time) bool {
	timer := m.clock.NewTimer(at.Sub(m.clock.Now()))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// held returns the Secret with ClusterLabel that makes the cluster a member, nil for any other candidate: the Secrets of a
// Source belong to another system.
func (m *Member) held() *corev1.Secret {
	candidate := m.source.candidate.Load()
	secret, ok := candidate.Object.(*corev1.Secret)
	if !ok || candidate.Source != "" || secret.Labels[ClusterLabel] != m.cluster {
		return nil
	}
	return secret
}

// errNoLater is the error of a member that has not renewed the token.
var errNoLater = errors.New("has no later token: its controller needs --renew-tokens")

// fetchToken asks the member for the token after one, and writes it to the member's Secret.
func (m *Member) fetchToken(ctx context.Context, secrets getsSecrets, has rotation.Token, token string) error {
	asking, cancel := context.WithTimeout(ctx, m.patience)
	defer cancel()
	name := rotation.Secret(has.Account)
	offered, err := secrets.Get(asking, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read Secret %s of the member: %w", name, err)
	}
	next := string(offered.Data[rotation.TokenKey])
	if is, ok := rotation.Parse(next); !ok || !is.Replaces(has) {
		return fmt.Errorf("secret %s of the member %w", name, errNoLater)
	}
	held := m.held()
	if held == nil || !bytes.Contains(held.Data[KubeconfigKey], []byte(token)) {
		return errors.New("the Secret of the member has another token now")
	}
	kubeconfig, err := ReplaceToken(held.Data[KubeconfigKey], next)
	if err != nil {
		return err
	}
	changed := held.DeepCopy()
	changed.Data[KubeconfigKey] = kubeconfig
	if err := m.keep(asking, changed); err != nil {
		return fmt.Errorf("write the new token to Secret %s: %w", NameOf(held), err)
	}
	klog.FromContext(ctx).Info("Renewed the token of the member", "secret", klog.KObj(held))
	return nil
}

// ReplaceToken returns a kubeconfig whose current user has another token, and which is otherwise the same. Its text stays
// but for the token if that is possible.
func ReplaceToken(kubeconfig []byte, token string) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, notKubeconfig(err)
	}
	var user *clientcmdapi.AuthInfo
	if context := config.Contexts[config.CurrentContext]; context != nil {
		user = config.AuthInfos[context.AuthInfo]
	}
	if user == nil || user.Token == "" {
		return nil, errors.New("the current user of the kubeconfig has no token to replace")
	}
	before := user.Token
	user.Token = token
	if bytes.Count(kubeconfig, []byte(before)) == 1 {
		text := []byte(strings.Replace(string(kubeconfig), before, token, 1))
		if again, err := clientcmd.Load(text); err == nil && reflect.DeepEqual(again, config) {
			return text, nil
		}
	}
	return clientcmd.Write(*config)
}
