// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
)

// URL returns the address of the API server. It does not change during the life of the cluster.
func (c *Cluster) URL() string { return "https://" + c.address.String() }

// ServiceIP returns an address in the first range of cluster IPs: the first one is that of the Service kubernetes, at which
// pods reach the API server, and the tenth one by convention that of the cluster's DNS.
func (c *Cluster) ServiceIP(number byte) string {
	address := c.options.ServiceCIDRs[0].Masked().Addr().As4()
	address[3] += number
	return netip.AddrFrom4(address).String()
}

// AdminKubeconfig returns the path of a kubeconfig with all rights, with a context named like the cluster. It must not
// be changed, and is removed with the cluster.
func (c *Cluster) AdminKubeconfig() string { return c.path(adminFile) }

// writeCredentials creates the keys, the certificate, and the token and kubeconfig of the administrator, which the components
// use, too, and writes the files.
func (c *Cluster) writeCredentials(directory string) error {
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
	admin := rand.Text()
	if c.Cluster, err = clusterset.New(c.options.Name, directory, &rest.Config{ // without a rate limit
		Host: c.URL(), BearerToken: admin, TLSClientConfig: rest.TLSClientConfig{CAData: certificate}, QPS: -1,
	}); err != nil {
		return err
	}
	files := map[string][]byte{
		servingFile: certificate, servingKeyFile: key, signingKeyFile: signing,
		tokensFile: []byte(admin + ",admin,1,system:masters\n"),
	}
	if files[adminFile], err = c.Kubeconfig(admin); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(c.path(name), content, 0o600); err != nil {
			return fmt.Errorf("write its credentials: %w", err)
		}
	}
	return nil
}
