// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

const (
	// lifetime is that of the tokens. The API server may grant less.
	lifetime = 30 * 24 * time.Hour
	// manager is the value of the label managed-by of all objects that join creates.
	manager = cluster.FieldManager
)

// An Issuer creates credentials for reading one cluster.
type Issuer struct {
	// Of is that cluster, ID its id.
	Of *cluster.Cluster
	ID string
	// Address is that of its API server for the reader.
	Address Address
	// Authority has the CA certificates of that address in PEM; empty means those of
	// the user.
	Authority []byte
	// DryRun is that of metav1.CreateOptions.
	DryRun []string
	Teller progress.Teller
}

// A Credential is that of one reader.
type Credential struct {
	// Kubeconfig is the content of the reader's Secret.
	Kubeconfig []byte
	// Expires is when its token expires, unless the reader renews it.
	Expires time.Time
}

// Issue creates a credential for a reader: a token of a ServiceAccount of its own, which the reader renews.
func (i Issuer) Issue(ctx context.Context, reader string) (Credential, error) {
	if err := i.account(ctx, reader); err != nil {
		return Credential{}, err
	}
	made, token := Credential{}, "dry-run"
	if i.DryRun == nil {
		issued, err := i.Of.Kube.CoreV1().ServiceAccounts(i.Of.Namespace).CreateToken(ctx, names.Account(reader),
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				ExpirationSeconds: ptr.To(int64(lifetime / time.Second)),
			}}, metav1.CreateOptions{})
		if err != nil {
			return made, fmt.Errorf("context %s: create a token for %s: %w", i.Of.Context, reader, err)
		}
		token, made.Expires = issued.Status.Token, issued.Status.ExpirationTimestamp.Time
		if err := i.tried(ctx, token, reader); err != nil {
			return made, err
		}
	}
	var err error
	if made.Kubeconfig, err = i.kubeconfig(ctx, token); err != nil {
		return made, fmt.Errorf("context %s: %w", i.Of.Context, err)
	}
	return made, nil
}

// tried returns an error if the API server rejects a token at the address of the
// reader. A rejection at another address proves nothing, because that may be a
// proxy that rejects service account tokens. Join waits for the reader in any
// case.
func (i Issuer) tried(ctx context.Context, token, reader string) error {
	err := i.try(ctx, token)
	switch {
	case err == nil:
		return nil
	case i.Address.Server == i.Of.Config.Host || ctx.Err() != nil:
		return fmt.Errorf("context %s: %s rejects the new credential for %s: %w: if this is a proxy that rejects service "+
			"account tokens, set the address of the API server with --server %s=https://…",
			i.Of.Context, i.Of.Config.Host, reader, err, i.Of.Context)
	}
	i.Teller.Say("%s: %s rejects the new credential for %s (%v); continuing, because %s uses %s",
		i.ID, i.Of.Config.Host, reader, err, reader, i.Address.Server)
	return nil
}

// tryTimeout bounds the time until an API server accepts new rights and tokens.
const tryTimeout = 15 * time.Second

// try reads the heartbeat with a token, at the address of the user.
func (i Issuer) try(ctx context.Context, token string) error {
	config := rest.AnonymousClientConfig(i.Of.Config)
	config.BearerToken = token
	by, err := cluster.FromConfig(config, i.Of.Context, i.Of.Namespace)
	if err != nil {
		return err
	}
	patient := i.Teller
	patient.Timeout = min(patient.Timeout, tryTimeout)
	return patient.Wait(ctx, func(ctx context.Context) (string, error) {
		_, err := by.Kube.CoordinationV1().Leases(i.Of.Namespace).Get(ctx, names.Heartbeat, metav1.GetOptions{})
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return "waiting for the API server to accept the credential: " + err.Error(), nil
		}
		return "", err
	})
}

func (i Issuer) kubeconfig(ctx context.Context, token string) ([]byte, error) {
	config := rest.CopyConfig(i.Of.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	authority := config.CAData
	if len(i.Authority) > 0 {
		authority = i.Authority
	}
	if len(authority) == 0 && config.Insecure {
		root, err := i.Of.Kube.CoreV1().ConfigMaps(i.Of.Namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("the kubeconfig has insecure-skip-tls-verify, and the certificate authority of the "+
				"cluster cannot be read: %w", err)
		}
		authority = []byte(root.Data["ca.crt"])
	}
	made := clientcmdapi.NewConfig()
	made.Clusters[i.ID] = &clientcmdapi.Cluster{
		Server: i.Address.Server, CertificateAuthorityData: authority,
		TLSServerName: i.Address.Name, ProxyURL: i.Address.Proxy,
	}
	made.AuthInfos[i.ID] = &clientcmdapi.AuthInfo{Token: token}
	made.Contexts[i.ID] = &clientcmdapi.Context{Cluster: i.ID, AuthInfo: i.ID, Namespace: i.Of.Namespace}
	made.CurrentContext = i.ID
	text, err := clientcmd.Write(*made)
	if err != nil {
		return nil, err
	}
	// The controller would reject it.
	if !strings.HasPrefix(i.Address.Server, "https://") {
		return nil, fmt.Errorf("the API server %s is not read over https", i.Address.Server)
	}
	return text, nil
}
