// SPDX-License-Identifier: Apache-2.0

package member

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kubeconfig is one with the given user and cluster, in flow style.
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

func TestParseKubeconfig(t *testing.T) {
	for name, test := range map[string]struct {
		kubeconfig string
		// wrong is a part of the error; empty where there is none.
		wrong string
	}{
		"a token": {kubeconfig(aToken, aServer), ""},
		"insecure": {
			kubeconfig(aToken, `{server: "https://192.0.2.1", insecure-skip-tls-verify: true}`),
			"insecure-skip-tls-verify is refused",
		},
		"no TLS": {
			kubeconfig(aToken, `{server: "http://192.0.2.1"}`),
			"use a server that begins with https://",
		},
		"no scheme": {
			kubeconfig(aToken, `{server: "192.0.2.1:6443"}`),
			"use a server that begins with https://",
		},
		"https in capitals": {kubeconfig(aToken, `{server: "HTTPS://192.0.2.1"}`), ""},
		"nothing":           {"", "no current-context"},
		"no YAML":           {"{", "no kubeconfig"},
		"another kind":      {`{apiVersion: v1, kind: Secret}`, "no kubeconfig"},
		"garbage":           {"garbage", "this is no kubeconfig: use YAML"},
		"no base64": {
			kubeconfig(aToken, `{server: "https://192.0.2.1", certificate-authority-data: "%"}`),
			"no kubeconfig",
		},
		"no current context": {`{apiVersion: v1, kind: Config}`, "no current-context"},
		"context of no cluster": {
			`{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {}}]}`, "context",
		},
		"unknown context": {`{apiVersion: v1, kind: Config, current-context: x}`, `no context "x"`},
		"no server":       {kubeconfig(aToken, `{server: ""}`), "context"},
		"a program": {
			kubeconfig(
				`{exec: {apiVersion: client.authentication.k8s.io/v1, command: id, interactiveMode: Never}}`, aServer),
			"exec",
		},
		"an auth provider":   {kubeconfig(`{auth-provider: {name: oidc}}`, aServer), "auth-provider"},
		"a token file":       {kubeconfig(`{tokenFile: /etc/passwd}`, aServer), "tokenFile"},
		"a certificate file": {kubeconfig(`{client-certificate: /etc/passwd}`, aServer), "client-certificate-data"},
		"a key file":         {kubeconfig(`{client-key: /etc/passwd}`, aServer), "client-key-data"},
		"a CA file": {kubeconfig(aToken,
			`{server: "https://192.0.2.1", certificate-authority: /etc/passwd}`), "certificate-authority-data"},
		"a CA that is none": {
			kubeconfig(aToken, `{server: "https://192.0.2.1", certificate-authority-data: eA==}`),
			"root certificates",
		},
		"a wrong certificate": {
			kubeconfig(`{client-certificate-data: eA==, client-key-data: eA==}`, aServer),
			"context",
		},
		"two things at once": {
			kubeconfig(`{tokenFile: /a, client-key: /b}`, aServer),
			"tokenFile (use token), client-key",
		},
	} {
		t.Run(name, func(t *testing.T) {
			credential, err := ParseKubeconfig([]byte(test.kubeconfig))
			if test.wrong == "" {
				if err != nil || credential.Config == nil || credential.Namespace != DefaultNamespace {
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

func TestNamespaceOfTheContext(t *testing.T) {
	text := strings.Replace(kubeconfig(aToken, aServer), "user: u}", "user: u, namespace: elsewhere}", 1)
	credential, err := ParseKubeconfig([]byte(text))
	if err != nil || credential.Namespace != "elsewhere" {
		t.Errorf("got %q, %v", credential.Namespace, err)
	}
}

func TestLoadKubeconfig(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(filepath.Join(folder, "token"), []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(kubeconfig(`{tokenFile: token}`, aServer)), 0o600); err != nil {
		t.Fatal(err)
	}
	credential, err := LoadKubeconfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(folder, "token"); credential.Config.BearerTokenFile != want {
		t.Errorf("the token is read from %q, want %q", credential.Config.BearerTokenFile, want)
	}
	insecure := filepath.Join(folder, "insecure")
	if err := os.WriteFile(insecure, []byte(kubeconfig(aToken, `{server: "http://192.0.2.1"}`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKubeconfig(insecure); err == nil || !strings.Contains(err.Error(), "https://") {
		t.Errorf("a server without TLS: %v", err)
	}
	plugin := filepath.Join(folder, "plugin")
	text := kubeconfig(`{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never}}`, aServer)
	if err := os.WriteFile(plugin, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKubeconfig(plugin); err == nil || !strings.Contains(err.Error(), "exec") {
		t.Errorf("a file that runs a program: %v", err)
	}
	if _, err := LoadKubeconfig(filepath.Join(folder, "none")); err == nil {
		t.Error("a file that does not exist: no error")
	}
}

// FuzzParseKubeconfig: whatever a Secret holds, what comes of it runs nothing and reads no file.
func FuzzParseKubeconfig(f *testing.F) {
	f.Add([]byte(kubeconfig(aToken, aServer)))
	f.Add([]byte(kubeconfig(`{tokenFile: /a}`, aServer)))
	f.Add([]byte(kubeconfig(`{exec: {apiVersion: client.authentication.k8s.io/v1, command: id}}`, aServer)))
	f.Fuzz(func(t *testing.T, text []byte) {
		credential, err := ParseKubeconfig(text)
		if err != nil {
			return
		}
		config := credential.Config
		if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" ||
			config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" {
			t.Errorf("the credential depends on this machine: %v", config)
		}
		if config.Insecure || !strings.HasPrefix(strings.ToLower(config.Host), "https://") {
			t.Errorf("anybody may answer at %s", config.Host)
		}
		if credential.Namespace == "" {
			t.Error("no namespace")
		}
	})
}

// TestNoTokenIsQuoted: what is wrong with a kubeconfig is told without what is in it.
func TestNoTokenIsQuoted(t *testing.T) {
	const token = "s3cr3t"
	for _, text := range []string{
		token, `"` + token + `"`, "- " + token, "{" + token, `{"token": "` + token, "token: " + token + "\n\t" + token,
		"[" + token + "]",
		"kind: " + token, `{apiVersion: v1, kind: Config, users: ` + token + `}`,
		kubeconfig(`{token: [`+token+`]}`, aServer),
		kubeconfig(token, aServer), kubeconfig(aToken, `{server: "https://192.0.2.1", insecure-skip-tls-verify: `+token+
			`}`),
	} {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, inSecret := ParseKubeconfig([]byte(text))
		_, inFile := LoadKubeconfig(path)
		for _, err := range []error{inSecret, inFile} {
			if err == nil || strings.Contains(err.Error(), token) {
				t.Errorf("%s: got %v", text, err)
			}
		}
	}
}
