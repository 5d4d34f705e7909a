// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

// RelayNames are those of the relays that a star may have.
var RelayNames = []string{"relay1", "relay2"}

// RunStar is Run with clusters that reach each other through relays alone. A relay is an API server without nodes and
// without a controller.
func RunStar(t *testing.T, names, relays []string, scenario func(t *testing.T, set *ClusterSet)) {
	t.Helper()
	RunIdle(t, append(append([]string{}, names...), relays...), func(t *testing.T, set *ClusterSet) {
		set.MakeStar(t, len(names))
		for _, reader := range set.clusters {
			for _, source := range set.clusters {
				if reader != source {
					reader.putMember(t, source.Name, source.Membership())
				}
			}
		}
		for _, cluster := range set.clusters {
			cluster.StartController()
			cluster.StartDNS()
		}
		scenario(t, set)
	})
}

// MakeStar makes relays of all clusters but the first ones. Those that remain publish there and read there.
func (s *ClusterSet) MakeStar(t *testing.T, clusters int) {
	t.Helper()
	s.relays = s.clusters[clusters:]
	s.clusters = s.clusters[:clusters:clusters]
	for _, cluster := range s.clusters {
		must := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		secrets := cluster.Kube.CoreV1().Secrets(member.DefaultNamespace)
		must(secrets.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: mailbox.SigningKeySecret},
			Data:       map[string][]byte{mailbox.SigningKeyKey: cluster.signingKey()},
		}, metav1.CreateOptions{}))
		for _, relay := range s.relays {
			must(secrets.Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Name: "relay-" + relay.Name, Labels: map[string]string{mailbox.RelayLabel: relay.Name},
				},
				Data: map[string][]byte{member.KubeconfigKey: relay.Kubeconfig(cluster.Name)},
			}, metav1.CreateOptions{}))
			must(relay.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
				ObjectMeta: metav1.ObjectMeta{Name: cluster.Mailbox()},
			}, metav1.CreateOptions{}))
		}
	}
}

// StartReaders starts the clusters from the one of a number on, as readers of all clusters of the star.
func (s *ClusterSet) StartReaders(t *testing.T, from int) {
	t.Helper()
	for _, reader := range s.clusters[from:] {
		for _, source := range s.clusters {
			if reader != source {
				reader.putMember(t, source.Name, source.Membership())
			}
		}
		reader.StartController()
	}
}

// Relays are those of a star, in the order that RunStar was given.
func (s *ClusterSet) Relays() []*Cluster { return s.relays }

// Mailbox is the namespace of the cluster in a relay.
func (c *Cluster) Mailbox() string { return mailbox.Namespace(member.DefaultNamespace, c.Name) }

// Membership is what the Secret has by which others read the cluster through relays.
func (c *Cluster) Membership() map[string][]byte {
	public, err := x509.MarshalPKIXPublicKey(c.key().Public())
	if err != nil {
		panic(err) // it has no reason to fail
	}
	return map[string][]byte{
		mailbox.PublicKeysKey: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
	}
}

// signingKey is the private key of the cluster, in PEM.
func (c *Cluster) signingKey() []byte {
	private, err := x509.MarshalPKCS8PrivateKey(c.key())
	if err != nil {
		panic(err) // as above
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

// key follows from the number of the cluster, so that a schedule can be repeated.
func (c *Cluster) key() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(c.number + 1)}, ed25519.SeedSize))
}
