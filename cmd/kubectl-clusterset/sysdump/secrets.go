// SPDX-License-Identifier: Apache-2.0

package sysdump

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/join"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// A credential is what the archive has of a Secret.
type credential struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Type        corev1.SecretType `json:"type"`
	Created     metav1.Time       `json:"created"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Keys are those of the data, with their sizes in bytes.
	Keys map[string]int `json:"keys"`
	// Server, ServerName and Authorities are from the kubeconfig of a member:
	// Authorities are SHA-256 fingerprints of the certificates.
	Server      string       `json:"server,omitempty"`
	ServerName  string       `json:"serverName,omitempty"`
	Authorities []string     `json:"authorities,omitempty"`
	Issued      *metav1.Time `json:"issued,omitempty"`
	Expires     *metav1.Time `json:"expires,omitempty"`
	// Refused says why the kubeconfig cannot be used.
	Refused string `json:"refused,omitempty"`
}

// credentials writes facts about the Secrets of members and readers, and learns
// their values, which must be in no file.
func (d *dump) credentials(ctx context.Context) {
	for file, label := range map[string]string{"members": member.ClusterLabel, "readers": join.ReaderLabel} {
		list, err := d.cluster.Kube.CoreV1().Secrets(d.cluster.Namespace).List(ctx,
			metav1.ListOptions{LabelSelector: label})
		d.fail("secrets of "+file, err)
		if err != nil {
			continue
		}
		found := []credential{}
		for i := range list.Items {
			for key, value := range list.Items[i].Data {
				// What is beside the token of a service account is no secret.
				if key != corev1.ServiceAccountNamespaceKey && key != corev1.ServiceAccountRootCAKey {
					d.secrets = append(d.secrets, value)
				}
			}
			found = append(found, credentialOf(&list.Items[i]))
		}
		encoded, err := yaml.Marshal(found)
		d.fail("secrets of "+file, err)
		d.files["secrets-of-"+file+".yaml"] = string(encoded)
	}
}

func credentialOf(secret *corev1.Secret) credential {
	c := credential{
		Name: secret.Name, Namespace: secret.Namespace, Type: secret.Type, Created: secret.CreationTimestamp,
		Labels: secret.Labels, Annotations: map[string]string{}, Keys: map[string]int{},
	}
	for name, value := range secret.Annotations {
		if strings.Contains(name, export.Domain+"/") { // others may hold the whole Secret
			c.Annotations[name] = value
		}
	}
	for key, value := range secret.Data {
		c.Keys[key] = len(value)
	}
	kubeconfig, ok := secret.Data[member.KubeconfigKey]
	if !ok {
		return c
	}
	parsed, err := member.ParseKubeconfig(kubeconfig)
	if err != nil {
		c.Refused = err.Error()
		return c
	}
	c.Server, c.ServerName = parsed.Config.Host, parsed.Config.ServerName
	for block, rest := pem.Decode(parsed.Config.CAData); block != nil; block, rest = pem.Decode(rest) {
		sum := sha256.Sum256(block.Bytes)
		c.Authorities = append(c.Authorities, hex.EncodeToString(sum[:]))
	}
	slices.Sort(c.Authorities)
	life := parsed.Life()
	if !life.Issued.IsZero() {
		c.Issued = &metav1.Time{Time: life.Issued}
	}
	if !life.Expires.IsZero() {
		c.Expires = &metav1.Time{Time: life.Expires}
	}
	return c
}
