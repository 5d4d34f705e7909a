// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
)

const membersPage = "operate/members.md"

// TestProjectedToken joins two clusters without a stored credential, as docs/operate/members.md says: the API server of
// west trusts tokens that east issues for it. The test requests the token in place of the kubelet.
func TestProjectedToken(t *testing.T) {
	east := controlplanetest.Start(t, controlplane.Options{Name: "east"})[0]
	west := controlplanetest.Start(t, controlplane.Options{
		Name: "west", APIServerArgs: []string{"--authentication-config=" + authentication(t, east)},
	})[0]
	for cluster, values := range map[*controlplane.Cluster]string{east: documented(t, membersPage, "clusterId: east"), west: documented(t, membersPage, "clusterId: west")} {
		apply(t, cluster, template(t, "--values", written(t, t.TempDir(), "values.yaml", values), "--set", "namespace.create=true"))
	}
	command := regexp.MustCompile(`kubectl --context east (create clusterrolebinding [^\n]+)`).FindStringSubmatch(
		read(t, root+"/docs/"+membersPage))[1]
	ctl(t, east, "", strings.Fields(command)...)

	const account, audience = "clusterset-controller", "https://west.example.org"
	token := tokenOf(t, east, account, audience)
	eventually(t, "west trusts tokens of east", func(ctx context.Context) error { return mayRead(ctx, t, west, token) })
	for name, token := range map[string]string{
		"another audience": tokenOf(t, east, account, "https://north.example.org"),
		"another account":  tokenOf(t, east, "clusterset-member", audience),
	} {
		if err := mayRead(t.Context(), t, west, token); !apierrors.IsUnauthorized(err) {
			t.Errorf("%s: %v, want Unauthorized", name, err)
		}
	}

	// The test takes the part of east's kubelet.
	folder := t.TempDir()
	written(t, folder, "west", token)
	secret := strings.ReplaceAll(documented(t, membersPage, "kind: Secret"), "https://west.example.org:6443", west.URL())
	apply(t, east, strings.ReplaceAll(secret, "LS0t...", base64.StdEncoding.EncodeToString(west.Config().CAData)))
	controllerOf(t, east, "--member-tokens", folder)
	controllerOf(t, west)
	publish(t, west, "10.2.0.1")
	reads(t, east, "10.2.0.1")

	// Access is revoked as documented: without the binding, east cannot read anything.
	ctl(t, west, "", "delete", "clusterrolebinding", "clusterset-member")
	eventually(t, "west does not serve east", func(ctx context.Context) error {
		if err := mayRead(ctx, t, west, token); !apierrors.IsForbidden(err) {
			return errors.Join(errors.New("not forbidden"), err)
		}
		return nil
	})
}

// authentication returns the path of the documented file with which west trusts east.
func authentication(t *testing.T, east *controlplane.Cluster) string {
	text := documented(t, membersPage, "kind: AuthenticationConfiguration")
	text = strings.ReplaceAll(text, "https://east-api.example.org:6443", east.URL())
	return written(t, t.TempDir(), "authentication.yaml", withAuthority(text, east))
}

// withAuthority puts the certificate authority of a cluster into a documented text.
func withAuthority(text string, of *controlplane.Cluster) string {
	indented := strings.ReplaceAll("\n"+strings.TrimSpace(string(of.Config().CAData)), "\n", "${1}")
	return regexp.MustCompile(`(\n +)-----BEGIN CERTIFICATE-----\n +\.\.\.`).ReplaceAllString(text, indented)
}

// tokenOf requests a token; with an audience, as the kubelet does for a projected volume.
func tokenOf(t *testing.T, cluster *controlplane.Cluster, account string, audience ...string) string {
	token, err := pki.Token(t.Context(), cluster.Client(), system, account, life, audience...)
	must(t, err)
	return token
}
