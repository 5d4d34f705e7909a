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

// URL returns the address of the API server. It does not change during the life of the cluster.
func (c *Cluster) URL() string { return c.config.Host }

// Config returns a client configuration with all rights and no rate limit. The caller may change it.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// ServiceAccountKubeconfig returns a kubeconfig with the rights of a service account, which must exist. Its token, from
// the TokenRequest API, is valid for 24 hours. The API server must be available.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) ([]byte, error) {
	token, err := pki.Token(ctx, c.clientset, namespace, name, pki.Lifetime)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.options.Name, err)
	}
	return c.kubeconfig(token)
}

// Client returns a client with all rights.
func (c *Cluster) Client() kubernetes.Interface { return c.clientset }

// AdminKubeconfig returns the path of a kubeconfig with all rights, with a context named like the cluster. It must not
// be changed, and is removed with the cluster.
func (c *Cluster) AdminKubeconfig() string { return c.path(adminFile) }

// Dynamic returns a dynamic client with all rights.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// kubeconfig returns a kubeconfig with a token. All names in it are the cluster's name.
func (c *Cluster) kubeconfig(token string) ([]byte, error) {
	return pki.Kubeconfig(c.options.Name, c.URL(), c.config.CAData, token, "")
}

// writeCredentials creates the keys, the certificate, the tokens and kubeconfigs, and writes the files for the components.
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
	admin, system, scheduler := rand.Text(), rand.Text(), rand.Text()
	c.config = &rest.Config{ // without a rate limit
		Host: "https://" + c.address.String(), BearerToken: admin, TLSClientConfig: rest.TLSClientConfig{CAData: certificate}, QPS: -1,
	}
	files := map[string][]byte{
		servingFile: certificate, servingKeyFile: key, signingKeyFile: signing,
		tokensFile: fmt.Appendf(nil,
			"%s,admin,1,system:masters\n%s,system:controlplane,2,system:masters\n%s,system:kube-scheduler,3\n",
			admin, system, scheduler),
	}
	for name, token := range map[string]string{adminFile: admin, systemFile: system, schedulerFile: scheduler} {
		if files[name], err = c.kubeconfig(token); err != nil {
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
