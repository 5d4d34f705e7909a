// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
)

// kubeconfig returns a kubeconfig with the given user and cluster, in YAML's flow style.
func kubeconfig(user, cluster string) string {
	return `{apiVersion: v1, kind: Config, current-context: x,
clusters: [{name: c, cluster: ` + cluster + `}],
users: [{name: u, user: ` + user + `}],
contexts: [{name: x, context: {cluster: c, user: u}}]}`
}

const (
	aToken  = `{token: t}`
	aServer = `{server: "https://192.0.2.1:6443"}`
)

// TestParseKubeconfig: errors name the problem of a kubeconfig without quoting its content.
func TestParseKubeconfig(t *testing.T) {
	const (
		proxy = "is no URL of a proxy: use http://, https:// or socks5://"
		data  = "use token, client-certificate-data, client-key-data and certificate-authority-data"
	)
	server := func(text string) string { return kubeconfig(aToken, `{server: "`+text+`"}`) }
	with := func(text string) string { return kubeconfig(aToken, `{server: "https://192.0.2.1", `+text+`}`) }
	user := func(text string) string { return kubeconfig(text, aServer) }
	for name, test := range map[string]struct {
		kubeconfig string
		wrong      string // a part of the error; empty if there is none
	}{
		"a token":               {user(aToken), ""},
		"a namespace":           {strings.Replace(user(aToken), "user: u}", "user: u, namespace: elsewhere}", 1), ""},
		"https in capitals":     {server("HTTPS://192.0.2.1"), ""},
		"no TLS":                {server("http://192.0.2.1"), "use a server that begins with https://"},
		"no server":             {server(""), "context"},
		"no port":               {server("https://s3cr3t@192.0.2.1:64a3"), "use a server that begins with https://"},
		"insecure":              {with("insecure-skip-tls-verify: true"), "insecure-skip-tls-verify is refused"},
		"a CA file":             {with("certificate-authority: /etc/passwd"), data},
		"a CA that is none":     {with("certificate-authority-data: eA=="), "root certificates"},
		"another proxy":         {with(`proxy-url: "ftp://user:s3cr3t@192.0.2.1"`), proxy},
		"a proxy of no scheme":  {with(`proxy-url: "user:s3cr3t@192.0.2.1"`), proxy},
		"a proxy that is none":  {with(`proxy-url: "http://user:s3cr3t@192.0.2.1:port"`), proxy},
		"a proxy without host":  {with(`proxy-url: "http://"`), proxy},
		"nothing":               {"", `no context ""`},
		"a token alone":         {"s3cr3t", "this is no kubeconfig: use YAML"},
		"a token of no form":    {user(`{token: [s3cr3t]}`), "no kubeconfig"},
		"context of no cluster": {`{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {}}]}`, "context"},
		"unknown context":       {`{apiVersion: v1, kind: Config, current-context: x}`, `no context "x"`},
		"a program":             {user(`{exec: {apiVersion: client.authentication.k8s.io/v1, command: id, interactiveMode: Never}}`), data},
		"an auth provider":      {user(`{auth-provider: {name: oidc}}`), data},
		"a token file":          {user(`{tokenFile: /etc/passwd}`), data},
		"a certificate file":    {user(`{client-certificate: /etc/passwd}`), data},
		"a key file":            {user(`{client-key: /etc/passwd}`), data},
		"a wrong certificate":   {user(`{client-certificate-data: eA==, client-key-data: eA==}`), "context"},
		"a token and a login":   {user(`{token: t, username: u, password: p}`), "more than one authentication method"},
	} {
		t.Run(name, func(t *testing.T) {
			credential, err := ParseKubeconfig([]byte(test.kubeconfig))
			if text := fmt.Sprint(err); strings.Contains(text, "s3cr3t") {
				t.Errorf("the token is told: %s", text)
			}
			if test.wrong == "" {
				namespace := map[string]string{"a namespace": "elsewhere"}[name]
				if err != nil || credential.Config == nil || credential.Namespace != cmp.Or(namespace, DefaultNamespace) {
					t.Errorf("got %v, %v", credential, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("got %v, want an error with %q", err, test.wrong)
			}
		})
	}
}

// harmless reports whether a credential runs nothing, reads no file, and discloses nothing to any server.
func harmless(c Credential) bool {
	is := c.Config
	return is.ExecProvider == nil && is.AuthProvider == nil && is.BearerTokenFile == "" && is.CAFile == "" && is.CertFile == "" &&
		is.KeyFile == "" && !is.Insecure && strings.HasPrefix(strings.ToLower(is.Host), "https://")
}

// FuzzParseKubeconfig: from any content of a Secret, the credential is harmless.
func FuzzParseKubeconfig(f *testing.F) {
	f.Add([]byte(kubeconfig(aToken, aServer)))
	f.Add([]byte(kubeconfig(`{tokenFile: /a}`, aServer)))
	f.Add([]byte(kubeconfig(`{exec: {apiVersion: client.authentication.k8s.io/v1, command: id}}`, aServer)))
	f.Fuzz(func(t *testing.T, text []byte) {
		if credential, err := ParseKubeconfig(text); err == nil && (!harmless(credential) || credential.Namespace == "") {
			t.Errorf("it is %v in %q", credential.Config, credential.Namespace)
		}
	})
}
