// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"os"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"

	"github.com/clusterset-dns/clusterset-dns/test/pki"
)

// Access is a way to the API server of a cluster, and the means to use it. Its methods may be called from any
// goroutine.
type Access struct {
	cluster *Cluster
	url     string
}

// URL is the address of the API server on this way. It stays the same for the life of the cluster.
func (a *Access) URL() string { return a.url }

// Config is a client configuration with all rights and no rate limit. It belongs to the caller.
func (a *Access) Config() *rest.Config {
	config := rest.CopyConfig(a.cluster.config)
	config.Host = a.url
	return config
}

// ServiceAccountKubeconfig is a kubeconfig with the rights of a service account, which must exist. Its token, from
// the TokenRequest API, lasts 24 hours. The API server must answer, whether this way to it is cut or not.
func (a *Access) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) ([]byte, error) {
	token, err := pki.Token(ctx, a.cluster.clientset, namespace, name, pki.Lifetime)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", a.cluster.options.Name, err)
	}
	return a.cluster.kubeconfig(a.url, token)
}

// Client is a client with all rights.
func (c *Cluster) Client() kubernetes.Interface { return c.clientset }

// AdminKubeconfig is the path of a kubeconfig with all rights, whose context is called after the cluster. It goes with the
// cluster, and is not to be changed.
func (c *Cluster) AdminKubeconfig() string { return c.path(adminFile) }

// Dynamic is a dynamic client with all rights.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// kubeconfig is one with a token, whose names are that of the cluster.
func (c *Cluster) kubeconfig(url, token string) ([]byte, error) {
	return pki.Kubeconfig(c.options.Name, url, c.authority, token, "")
}

// writeCredentials makes the keys, the certificate, the tokens and kubeconfigs, and writes what the components read.
func (c *Cluster) writeCredentials() error {
	addresses := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}
	for _, services := range c.options.ServiceCIDRs {
		addresses = append(addresses, services.Masked().Addr().Next()) // of the Service "kubernetes"
	}
	certificate, key, err := pki.SelfSigned([]string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local",
	}, addresses...)
	if err != nil {
		return err
	}
	signing, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("make the key of service accounts: %w", err)
	}
	c.authority, c.admin = certificate, rand.Text()
	system, scheduler := rand.Text(), rand.Text()
	files := map[string][]byte{
		servingFile: certificate, servingKeyFile: key, signingKeyFile: signing, stagesFile: stages,
		tokensFile: fmt.Appendf(nil,
			"%s,admin,1,system:masters\n%s,system:controlplane,2,system:masters\n%s,system:kube-scheduler,3\n",
			c.admin, system, scheduler),
	}
	for name, token := range map[string]string{adminFile: c.admin, systemFile: system, schedulerFile: scheduler} {
		if files[name], err = c.kubeconfig(c.URL(), token); err != nil {
			return err
		}
	}
	for name, content := range files {
		if err := os.WriteFile(c.path(name), content, 0o600); err != nil {
			return fmt.Errorf("write its credentials: %w", err)
		}
	}
	return nil
}
