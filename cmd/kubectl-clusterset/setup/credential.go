// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applyrbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

const (
	// lifetime is the requested lifetime of tokens. The API server may grant less.
	lifetime = 30 * 24 * time.Hour
	// tryTimeout bounds the time until an API server accepts a new token.
	tryTimeout = 15 * time.Second
)

// issue returns a kubeconfig for the reader, with a token of a ServiceAccount of its own, and when the token expires unless
// the reader renews it.
func (p *peering) issue(ctx context.Context, at *clientcmdapi.Cluster) (kubeconfig []byte, expires time.Time, err error) {
	if !strings.HasPrefix(at.Server, "https://") {
		return nil, expires, fmt.Errorf("the address %s is not https, which the controller of %s would reject", at.Server, p.reader.ID)
	}
	if err := p.account(ctx); err != nil {
		return nil, expires, err
	}
	token := "dry-run"
	if !p.DryRun {
		issued, err := p.source.Kube.CoreV1().ServiceAccounts(p.source.Namespace).CreateToken(ctx, cluster.Account(p.reader.ID),
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				ExpirationSeconds: ptr.To(int64(lifetime / time.Second)),
			}}, metav1.CreateOptions{})
		if err != nil {
			return nil, expires, fmt.Errorf("create a token: %w", err)
		}
		token, expires = issued.Status.Token, issued.Status.ExpirationTimestamp.Time
		if err := p.try(ctx, token, at.Server); err != nil {
			return nil, expires, err
		}
	}
	made, id := clientcmdapi.NewConfig(), p.source.ID
	made.Clusters[id], made.AuthInfos[id] = at, &clientcmdapi.AuthInfo{Token: token}
	made.Contexts[id] = &clientcmdapi.Context{Cluster: id, AuthInfo: id, Namespace: p.source.Namespace}
	made.CurrentContext = id
	kubeconfig, err = clientcmd.Write(*made)
	return kubeconfig, expires, err
}

// account creates the ServiceAccount with which the reader reads the source, and its right to request its own tokens. The
// account may read what all accounts of the namespace may read.
func (p *peering) account(ctx context.Context) error {
	name := cluster.Account(p.reader.ID)
	labels := map[string]string{cluster.ReaderLabel: p.reader.ID, cluster.ManagedByLabel: cluster.FieldManager}
	made, err := p.source.Kube.CoreV1().ServiceAccounts(p.source.Namespace).Apply(ctx,
		applycorev1.ServiceAccount(name, p.source.Namespace).WithAutomountServiceAccountToken(false).
			WithLabels(labels), p.apply())
	if err != nil {
		return fmt.Errorf("create its account: %w", err)
	}
	err = p.allow(ctx, p.source, grant{
		name: name, account: name, labels: labels, kind: "ServiceAccount", owner: made, verb: "create",
		resource: "serviceaccounts/token",
	})
	if err != nil {
		return fmt.Errorf("allow its account to renew the token: %w", err)
	}
	return nil
}

// A grant is a Role and its binding, which allow a ServiceAccount a verb on a part of the owner, and nothing else. Both are
// deleted with the owner.
type grant struct {
	name, account  string
	labels         map[string]string // of both
	kind           string            // of the owner
	owner          metav1.Object
	verb, resource string
}

func (o Options) allow(ctx context.Context, c *cluster.Cluster, g grant) error {
	owner := applymetav1.OwnerReference().WithAPIVersion("v1").WithKind(g.kind).WithName(g.owner.GetName()).WithUID(g.owner.GetUID())
	role := applyrbacv1.Role(g.name, c.Namespace).WithLabels(g.labels).WithOwnerReferences(owner).
		WithRules(applyrbacv1.PolicyRule().WithAPIGroups("").WithResources(g.resource).WithResourceNames(g.owner.GetName()).
			WithVerbs(g.verb))
	binding := applyrbacv1.RoleBinding(g.name, c.Namespace).WithLabels(g.labels).WithOwnerReferences(owner).
		WithRoleRef(applyrbacv1.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(g.name)).
		WithSubjects(applyrbacv1.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(g.account).WithNamespace(c.Namespace))
	_, err := c.Kube.RbacV1().Roles(c.Namespace).Apply(ctx, role, o.apply())
	if err == nil {
		_, err = c.Kube.RbacV1().RoleBindings(c.Namespace).Apply(ctx, binding, o.apply())
	}
	return err
}

func (o Options) apply() metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: cluster.FieldManager, Force: true, DryRun: cluster.DryRun(o.DryRun)}
}

// try returns an error if the source rejects requests of members with the token, at the address of the user. If the reader uses
// another address, only a missing right counts: the user's may be a proxy that rejects service account tokens. Join waits for
// the reader in any case.
func (p *peering) try(ctx context.Context, token, server string) error {
	config := rest.AnonymousClientConfig(p.source.Config)
	config.BearerToken = token
	by, err := cluster.FromConfig(config, p.source.Context, p.source.Namespace)
	if err != nil {
		return err
	}
	patient := p.Teller
	patient.Timeout = min(patient.Timeout, tryTimeout)
	var rejected error
	err = patient.Wait(ctx, func(ctx context.Context) (string, error) {
		_, err := by.Kube.CoordinationV1().Leases(by.Namespace).Get(ctx, cluster.HeartbeatLease, metav1.GetOptions{})
		if err == nil {
			_, err = by.Kube.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{Limit: 1})
		}
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			rejected = err
			return "waiting for the API server to accept the credential: " + err.Error(), nil
		}
		return "", err
	})
	if errors.Is(err, cluster.ErrTimeout) && rejected != nil {
		err = rejected
	}
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("its account lacks a right of members: %w: restore it with `helm upgrade` of the chart in namespace %s",
			err, p.source.Namespace)
	case strings.TrimSuffix(server, "/") == strings.TrimSuffix(config.Host, "/") || ctx.Err() != nil:
		return fmt.Errorf("%s rejects it: %w: if this is a proxy that rejects service account tokens, set the address of the "+
			"API server with --server %s=https://…", config.Host, err, p.source.Context)
	}
	p.Teller.Say("context %s: %s rejects the new credential for %s (%v); continuing, because %[3]s uses %[5]s", p.source.Context,
		config.Host, p.reader.ID, err, server)
	return nil
}

// own returns how a configuration reaches its API server. FromConfig has loaded the certificate authority.
func own(config *rest.Config) *clientcmdapi.Cluster {
	at := &clientcmdapi.Cluster{
		Server: config.Host, TLSServerName: config.ServerName, CertificateAuthorityData: config.CAData,
	}
	if config.Proxy != nil {
		if proxy, err := config.Proxy(&http.Request{URL: &url.URL{Scheme: "https"}}); err == nil && proxy != nil {
			at.ProxyURL = proxy.String()
		}
	}
	return at
}

// reach returns how the reader reaches its source. The address in the Secret, with its certificate authority, stays unless
// the options set another, because users may reach an API server at another address than clusters. reach reports a
// difference.
func (p *peering) reach() *clientcmdapi.Cluster {
	users := own(p.source.Config)
	users.ProxyURL = state.WithoutLogin(users.ProxyURL)
	if server := p.Servers[p.source.Context]; server != "" {
		users.Server, users.ProxyURL = server, ""
		return users
	}
	// There is no address before the first join, and the controller rejects an invalid one.
	before, err := clientcmd.RESTConfigFromKubeConfig(p.secret.Data[cluster.KubeconfigKey])
	if err != nil || !strings.HasPrefix(before.Host, "https://") {
		return users
	}
	had := own(before)
	if had.Server == users.Server && had.TLSServerName == users.TLSServerName && state.WithoutLogin(had.ProxyURL) == users.ProxyURL {
		users.ProxyURL = had.ProxyURL
		return users
	}
	p.Teller.Did("%s keeps reading %s at %s (Secret %s). To use another address, set --server %s=https://…", p.reader.ID,
		p.source.ID, had.Server, p.secret.Name, p.source.Context)
	return had
}

// loopback reports whether an address is a loopback address.
func loopback(server string) bool {
	address, err := url.Parse(server)
	return err == nil && (address.Hostname() == "localhost" || net.ParseIP(address.Hostname()).IsLoopback())
}
