// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/membership/access"
	"github.com/clusterset-dns/clusterset-dns/controller/membership/argocd"
	"github.com/clusterset-dns/clusterset-dns/controller/membership/clusterapi"
	"github.com/clusterset-dns/clusterset-dns/controller/membership/clusterprofile"
	"github.com/clusterset-dns/clusterset-dns/controller/membership/ocm"
)

// FuzzCandidates: any content of an object gives the same candidate twice, and no connection that discloses a credential,
// runs a program or reads a file.
func FuzzCandidates(f *testing.F) {
	for _, seed := range []string{
		`{"bearerToken":"t","tlsClientConfig":{"insecure":false}}`, `{"execProviderConfig":{"command":"x"}}`,
		`{"status":{"accessProviders":[{"name":"secretreader","cluster":{"server":"https://192.0.2.1"}}]}}`,
		`{"status":{"accessProviders":[{"name":"secretreader","cluster":{"certificate-authority-data":7}}]}}`,
		`{"spec":{"managedClusterClientConfigs":[{"url":"https://192.0.2.1","caBundle":"eA=="}]}}`,
		`{"apiVersion":"v1","kind":"Config","current-context":"x","clusters":[{"name":"c","cluster":{"server":"https://x"}}],` +
			`"users":[{"name":"u","user":{"tokenFile":"/x"}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}]}`,
	} {
		f.Add([]byte(seed))
	}
	permitted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{access.TokenOfLabel: "x"},
			Annotations: map[string]string{access.ServerAnnotation: "https://192.0.2.1"},
		},
		Data: map[string][]byte{access.TokenKey: []byte("permitted")},
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		secret := func(key string) *corev1.Secret {
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{member.ClusterLabel: "x"}},
				Data:       map[string][]byte{"server": []byte("https://192.0.2.1"), key: text},
			}
		}
		all := func() []*member.Candidate {
			list := []*member.Candidate{
				argocd.Candidate(secret("config"), "n"), clusterapi.Candidate(secret("value"), nil, "n"),
				clusterapi.Candidate(secret("value"), permitted, "n"),
			}
			object := map[string]any{}
			if json.Unmarshal(text, &object) == nil && object != nil {
				delete(object, "metadata")
				is := &unstructured.Unstructured{Object: object}
				is.SetName("x")
				token := secret("token")
				token.Labels = map[string]string{"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"}
				list = append(list, clusterprofile.Candidate(is, permitted, "n"), ocm.Candidate(is, "a", token, "n"),
					ocm.Candidate(is, "a", nil, "n"))
			}
			return list
		}
		again := all()
		for i, each := range all() {
			if each.Cluster != again[i].Cluster || !bytes.Equal(each.Kubeconfig, again[i].Kubeconfig) ||
				(each.Err == nil) != (again[i].Err == nil) {
				t.Fatalf("%s is %v, then %v", each, each, again[i])
			}
			if each.Err != nil {
				continue
			}
			credential, err := member.ParseKubeconfig(each.Kubeconfig)
			if err != nil {
				continue
			}
			config := credential.Config
			if config.Proxy != nil || config.BearerToken == "permitted" && config.Host != "https://192.0.2.1" {
				t.Fatalf("%s has a proxy, or sends the token to %s", each, config.Host)
			}
			if config.ExecProvider != nil || config.BearerTokenFile != "" || config.CertFile != "" || config.KeyFile != "" ||
				config.CAFile != "" || config.Insecure || !strings.HasPrefix(strings.ToLower(config.Host), "https://") ||
				credential.Namespace != "n" {
				t.Fatalf("%s has %v", each, config)
			}
		}
	})
}

// FuzzParse: a value of --members-from that is accepted has no spaces, so that it can be a part of an annotation.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"argocd:argocd", "ocm", "ocm::a=b", "directory:/x", "clusterprofile:a:b in (c,d)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if spec, err := Parse(text); err == nil && (spec.Text != text || spec.Argument == "" || strings.Contains(text, " ")) {
			t.Fatalf("%q is %+v", text, spec)
		}
	})
}
