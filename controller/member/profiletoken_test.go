// SPDX-License-Identifier: Apache-2.0

package member

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTokenOfAnotherSecret: an object of an inventory cannot make the controller send a token of its namespace that is not
// for this cluster at this server. In each test the Secret that the object names differs from a valid one.
func TestTokenOfAnotherSecret(t *testing.T) {
	const tokenOf, server = "clusterset-dns.github.io/token-of", "clusterset-dns.github.io/server"
	label := func(key, value string) func(*corev1.Secret) {
		return func(secret *corev1.Secret) { secret.Labels[key] = value }
	}
	for name, test := range map[string]struct {
		change func(*corev1.Secret)
		want   string
	}{
		"valid":                {func(*corev1.Secret) {}, ""},
		"no label":             {func(secret *corev1.Secret) { delete(secret.Labels, tokenOf) }, "label " + tokenOf},
		"token of another":     {label(tokenOf, "other"), "label " + tokenOf},
		"no server":            {func(secret *corev1.Secret) { secret.Annotations = nil }, "annotation " + server},
		"another server":       {func(secret *corev1.Secret) { secret.Annotations[server] += ".test" }, "annotation " + server},
		"no token":             {func(secret *corev1.Secret) { delete(secret.Data, "token") }, "token"},
		"credential of member": {label(ClusterLabel, "other"), "label " + ClusterLabel},
		"token of an account": {func(secret *corev1.Secret) {
			secret.Type = corev1.SecretTypeServiceAccountToken
		}, string(corev1.SecretTypeServiceAccountToken)},
	} {
		t.Run(name, func(t *testing.T) {
			source, client, _ := profilesOf(t, "clusterprofile:fleet")
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Name: "west", Namespace: "clusterset-dns", Labels: map[string]string{tokenOf: "west"},
					Annotations: map[string]string{server: "https://west.example.org:6443"},
				},
				Data: map[string][]byte{"token": []byte("valuable")},
			}
			test.change(secret)
			if _, err := client.CoreV1().Secrets(secret.Namespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			c := profileOf(t, source, "fleet/west")
			if test.want == "" {
				if !strings.HasSuffix(shown(c), " ca valuable") {
					t.Errorf("a valid Secret is not used: %s", shown(c))
				}
				return
			}
			if c.Err == nil || !strings.Contains(c.Err.Error(), test.want) ||
				!strings.Contains(c.Err.Error(), "clusterset-dns/west") {
				t.Errorf("got the error %v, want one with %q", c.Err, test.want)
			}
			if len(c.Kubeconfig) > 0 || c.Cluster != "west" {
				t.Errorf("%s has a kubeconfig, or another id: %s", c, shown(c))
			}
		})
	}
}

// profileOf returns the candidate of a source that is an object.
func profileOf(t *testing.T, source Source, object string) *Candidate {
	t.Helper()
	candidates, err := source.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(candidates, func(c *Candidate) bool { return c.Name == object })
	if i < 0 {
		t.Fatalf("%s is not among %v", object, candidates)
	}
	return candidates[i]
}
