// SPDX-License-Identifier: Apache-2.0

package sysdump

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

const (
	// opaque looks like nothing: only its place in a Secret shows that it is one.
	opaque = "Zq7-plain-words-K2v"
	jwt    = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJpYXQiOjE3NzIzNjY0MDAsImV4cCI6MTgwMzkwMjQwMH0." +
		"c2lnbmF0dXJlLW9mLXRoZS10b2tlbg"
	// opaqueToken is that of a Secret that does not expire.
	opaqueToken = "a-token-without-any-form"
	// old was rotated: no Secret has it any more.
	old    = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjAifQ.eyJzdWIiOiJvbGQtdG9rZW4iLCJpYXQiOjF9.b2xkLXNpZ25hdHVyZQ"
	key    = "-----BEGIN PRIVATE KEY-----\nTUlJQ3F3SUJBREFOQmdrcWhraUc5dzBCQVFFRkFBU0NBSlV3\n-----END PRIVATE KEY-----\n"
	user   = "token-of-the-user-of-kubectl"
	hidden = "in-a-field-of-a-kubeconfig"
)

// authority is a certificate, in DER.
var authority = func() []byte {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return s.Certificate().Raw
}()

// kubeconfig is that of a member.
var kubeconfig = fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: m,
clusters: [{name: m, cluster: {server: "https://west.example.org:6443", certificate-authority-data: %s}}],
users: [{name: m, user: {token: %s, client-key-data: %s}}], contexts: [{name: m, context: {cluster: m, user: m}}]}`,
	base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority})), jwt,
	base64.StdEncoding.EncodeToString([]byte(key)))

// secrets are in no archive, and neither is what they become in base64.
func secrets() []string {
	var all []string
	for _, text := range []string{
		opaque, opaqueToken, jwt, old, user, hidden, "TUlJQ3F3SUJBREFOQmdrcWhraUc5dzBCQVFFRkFBU0NBSlV3",
	} {
		all = append(all, text, base64.StdEncoding.EncodeToString([]byte(text)),
			// As a part of something longer, by the offset of its first byte.
			base64.StdEncoding.EncodeToString([]byte(text))[4:12], base64.StdEncoding.EncodeToString([]byte("x" + text))[4:16],
			base64.StdEncoding.EncodeToString([]byte("xx" + text))[4:16])
	}
	all = append(all, strings.Split(jwt, ".")[1:]...)
	return append(all, "hunter2-in-a-url", "hunter2-of-etcd", "hunter2-in-env")
}

// leaks has all secrets, as logs and annotations may have them.
func leaks() string {
	inner := strings.ReplaceAll(kubeconfig, jwt, opaque)
	list := []string{
		"token=" + hidden, "Authorization: Basic " + hidden, "sent with Bearer " + hidden,
		"the header was Bearer " + old, `{"token": "` + hidden + `"}`, "password: " + hidden,
		"run --token " + hidden, `["--bearer-token", "` + hidden + `"]`, `[\"--password\",\"` + hidden + `\"]`,
		opaque, opaqueToken, jwt, old, key, strings.ReplaceAll(key, "\n", `\n`), kubeconfig, inner,
		base64.StdEncoding.EncodeToString([]byte(kubeconfig)), "a/" + base64.StdEncoding.EncodeToString([]byte(inner)),
		"https://admin:hunter2-in-a-url@example.org/", `{\"client-key-data\":\"` + hidden + `\"}`, user,
	}
	return strings.Join(list, "\n") + "\n-----BEGIN CERTIFICATE-----\n"
}

// server is an API server whose objects have secrets everywhere.
func server(t *testing.T) *httptest.Server {
	t.Helper()
	encode := func(value any) string {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	secret := map[string]any{
		"metadata": map[string]any{"name": "member-west", "namespace": "clusterset-dns", "annotations": map[string]any{
			"clusterset-dns.github.io/cidrs": "10.2.0.0/16",
		}},
		"data": map[string][]byte{"kubeconfig": []byte(kubeconfig), "other": []byte(opaque)},
	}
	longLived := map[string]any{
		"metadata": map[string]any{"name": "clusterset-reader-west", "namespace": "clusterset-dns"},
		"type":     "kubernetes.io/service-account-token",
		"data": map[string][]byte{
			"token": []byte(opaqueToken), "namespace": []byte("clusterset-dns"),
			"ca.crt": []byte("-----BEGIN CERTIFICATE-----"),
		},
	}
	applied := encode(secret)
	annotations := secret["metadata"].(map[string]any)["annotations"].(map[string]any)
	annotations["kubectl.kubernetes.io/last-applied-configuration"] = applied
	metadata := map[string]any{
		"name": "coredns", "namespace": "shop", "labels": map[string]any{
			"app.kubernetes.io/managed-by": "clusterset-controller.clusterset-dns.github.io",
		},
		"annotations": map[string]any{
			"kubectl.kubernetes.io/last-applied-configuration": applied, "example.org/copy": applied,
			"example.org/note": leaks(),
		},
		"managedFields": []any{map[string]any{"manager": "kubectl"}},
	}
	container := map[string]any{
		"name": "coredns", "ports": []any{map[string]any{"name": "metrics", "containerPort": 9153}},
		"args": []any{"--token=" + hidden, "--zone=clusterset.local", "--client-secret", hidden, "--v", "2"},
		"env": []any{
			map[string]any{"name": "KEY", "value": "hunter2-in-env"},
			map[string]any{"name": "HTTPS_PROXY", "value": "http://proxy:3128"},
		},
	}
	object := map[string]any{
		"metadata": metadata, "message": leaks(),
		"data": map[string]any{
			"Corefile": ". {\n  etcd {\n    credentials root hunter2-of-etcd\n  }\n  forward . 10.0.0.1\n}\n",
		},
		"involvedObject": map[string]any{"name": "coredns-1"}, "spec": map[string]any{
			"containers": []any{container}, "template": map[string]any{"spec": map[string]any{"containers": []any{container}}},
		},
		"status": map[string]any{"containerStatuses": []any{map[string]any{"name": "coredns", "restartCount": 1}}},
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch path := request.URL.Path; {
		case path == "/version":
			fmt.Fprint(w, `{"gitVersion":"v1.36.1"}`)
		case path == "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","groups":[{"name":"multicluster.x-k8s.io","versions":`+
				`[{"groupVersion":"multicluster.x-k8s.io/v1beta1","version":"v1beta1"}]}]}`)
		case strings.HasSuffix(path, "/secrets"):
			fmt.Fprint(w, encode(map[string]any{"kind": "SecretList", "apiVersion": "v1", "items": []any{secret, longLived}}))
		case strings.HasSuffix(path, "/log"), strings.HasSuffix(path, "/metrics"):
			fmt.Fprint(w, "the log begins\n"+leaks()+"the log ends\n")
		case strings.HasSuffix(path, "/leases"):
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,`+
				`"message":"no leases for %s"}`, user)
		default:
			fmt.Fprint(w, encode(map[string]any{"kind": "ThingList", "apiVersion": "v1", "items": []any{object}}))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// dumped are the files of an archive of the clusters east, which answers, and
// west, which does not.
func dumped(t *testing.T) (map[string]string, int) {
	t.Helper()
	var clusters []*cluster.Cluster
	for context, host := range map[string]string{"admin@east/1": server(t).URL, "west": "https://127.0.0.1:1"} {
		c, err := cluster.FromConfig(&rest.Config{
			Host: host, BearerToken: user,
			TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		}, context, "clusterset-dns")
		if err != nil {
			t.Fatal(err)
		}
		clusters = append(clusters, c)
	}
	var archive bytes.Buffer
	failed, err := Write(t.Context(), &archive, "dump", Options{
		Clusters: clusters, Reports: map[string]string{"status.txt": "status\n" + leaks()}, Now: time.Unix(0, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(&archive)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, failed
		}
		text, readErr := io.ReadAll(reader)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "dump/")] = string(text)
	}
}

// TestNoSecretIsInTheArchive looks for each secret in all files.
func TestNoSecretIsInTheArchive(t *testing.T) {
	files, _ := dumped(t)
	for name, text := range files {
		for _, secret := range secrets() {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s has the secret %q: %q", name, secret, text[max(0, at-60):min(len(text), at+60)])
			}
		}
	}
}

// TestTheArchiveHasWhatItIsFor holds that what is no secret stays.
func TestTheArchiveHasWhatItIsFor(t *testing.T) {
	files, failed := dumped(t)
	for name, wants := range map[string][]string{
		"status.txt":                                     {"status\n", "\n-----BEGIN CERTIFICATE-----\n"},
		"admin_east_1/kubernetes.json":                   {"v1.36.1"},
		"admin_east_1/services.yaml":                     {"name: coredns", "kind: Thing"},
		"admin_east_1/deployments.yaml":                  {"http://proxy:3128", "--zone=clusterset.local", "- --v\n"},
		"admin_east_1/configmaps/coredns/Corefile":       {"forward . 10.0.0.1", "credentials <redacted>\n"},
		"admin_east_1/logs/coredns/coredns.log":          {"the log begins\n", "the log ends\n"},
		"admin_east_1/logs/coredns/coredns-previous.log": {"the log ends\n"},
		"admin_east_1/metrics/coredns.txt":               {"the log ends\n"},
		"admin_east_1/secrets-of-members.yaml": {
			"server: https://west.example.org:6443", "kubeconfig: ", "other: 19", "clusterset-dns.github.io/cidrs: 10.2.0.0/16",
			"namespace: clusterset-dns", "ca.crt: 27",
			fmt.Sprintf("%x", sha256.Sum256(authority)), "expires: \"2027-03-01T12:00:00Z\"",
		},
		"admin_east_1/errors.txt": {"leases: no leases for <redacted>"},
		"west/errors.txt":         {"API server: ", "connection refused"},
	} {
		for _, want := range wants {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s lacks %q:\n%s", name, want, files[name])
			}
		}
	}
	if failed != 2 || strings.Contains(files["admin_east_1/services.yaml"], "managedFields") {
		t.Errorf("%d errors, and\n%s", failed, files["admin_east_1/services.yaml"])
	}
	for name := range files {
		if strings.HasPrefix(name, "west/") && name != "west/errors.txt" {
			t.Errorf("there is %s of a cluster that does not answer", name)
		}
	}
	if names := []string{"nodes", "leases", "events"}; !slices.ContainsFunc(names, func(name string) bool {
		return files["admin_east_1/"+name+".yaml"] != ""
	}) {
		t.Error("files are missing")
	}
}

// TestScrubKeepsWords holds that the patterns leave what is no secret.
func TestScrubKeepsWords(t *testing.T) {
	const text = "automountServiceAccountToken: false\nsecret:\n  secretName: member-west\n" +
		"image: example.org/a@sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\n" +
		"https://10.0.0.1:6443/api\nsecret=\"clusterset-dns/member-west\" the token expires in 3 days\n" +
		"type: kubernetes.io/service-account-token\n- created: null\n- --token-file\n- /a\n- token\n" +
		"- name: a\nafter --token\nanother line, --v, 2\n"
	if got := (&scrubber{}).scrub(text); got != text {
		t.Errorf("got\n%s", got)
	}
}
