// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

const (
	// user is the token of the user of kubectl, token the token in a Secret, and env a value in the environment of a container.
	user, token, env = "token-of-the-user-of-kubectl", "token-in-a-secret", "password-in-the-environment"
)

// server is an API server whose objects have secrets everywhere.
func server(t *testing.T) *httptest.Server {
	t.Helper()
	const applied = `"kubectl.kubernetes.io/last-applied-configuration": "data: ` + token + `"`
	const container = `{"name": "coredns", "args": ["--zone=clusterset.local", "--v", "2"], "env": [{"name": "KEY", "value": "` + env + `"}],
		"ports": [{"name": "metrics", "containerPort": 9153}]}`
	const object = `{
		"metadata": {"name": "coredns", "namespace": "shop", "labels": {"env": "production"}, "annotations": {` + applied + `},
			"managedFields": [{"manager": "kubectl"}]},
		"data": {"Corefile": ". {\n  forward . 10.0.0.1\n}\n"},
		"spec": {"containers": [` + container + `], "template": {"spec": {"containers": [` + container + `]}}},
		"status": {"containerStatuses": [{"name": "coredns", "restartCount": 1}]}}`
	secret := fmt.Sprintf(`{"metadata": {"name": "member-west", "annotations": {%s}}, "data": {"kubeconfig": %q}}`, applied,
		base64.StdEncoding.EncodeToString([]byte(token)))
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch path := request.URL.Path; {
		case path == "/apis/multicluster.x-k8s.io/v1beta1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"multicluster.x-k8s.io/v1beta1"}`)
		case strings.HasSuffix(path, "/secrets"):
			fmt.Fprintf(w, `{"kind":"SecretList","apiVersion":"v1","items":[%s]}`, secret)
		case strings.HasSuffix(path, "/log"), strings.HasSuffix(path, "/metrics"):
			fmt.Fprint(w, "the log begins\nthe log ends\n")
		case strings.HasSuffix(path, "/leases"):
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no leases for you"}`)
		case strings.HasSuffix(path, "/pods"):
			fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","items":[%s]}`, object)
		default:
			fmt.Fprintf(w, `{"kind":"ThingList","apiVersion":"v1","items":[%s]}`, object)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestSysdump: the archive of the clusters east, which answers, and west, which does not, has all its files, and no credential:
// not of a Secret, nor of the environment of containers, nor of the user, plain or in base64.
func TestSysdump(t *testing.T) {
	const east = "admin%40east%2F1/"
	var clusters []*cluster.Cluster
	for context, host := range map[string]string{"admin@east/1": server(t).URL, "west": "https://127.0.0.1:1"} {
		c, err := cluster.FromConfig(&rest.Config{
			Host: host, BearerToken: user,
			TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		}, context, "clusterset-dns")
		must(t, err)
		clusters = append(clusters, c)
	}
	var archive bytes.Buffer
	failed, err := WriteSysdump(t.Context(), &archive, "dump", clusters, map[string]string{"status.txt": "status\n"})
	must(t, err)
	unzipped, err := gzip.NewReader(&archive)
	must(t, err)
	files := map[string]string{}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		text, readErr := io.ReadAll(reader)
		must(t, err, readErr)
		files[strings.TrimPrefix(header.Name, "dump/")] = string(text)
	}
	for name, text := range files {
		for _, secret := range []string{user, token, env} {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
				if at := strings.Index(text, form); at >= 0 {
					t.Errorf("%s has %q: %q", name, secret, text[max(0, at-60):min(len(text), at+60)])
				}
			}
		}
	}
	for name, wants := range map[string][]string{
		"status.txt":                               {"status\n"},
		east + "services.yaml":                     {"name: coredns", "kind: Thing", "env: production"},
		east + "deployments.yaml":                  {"--zone=clusterset.local", "- --v\n"},
		east + "configmaps.yaml":                   {"forward . 10.0.0.1"},
		east + "logs/coredns/coredns.log":          {"the log begins\n", "the log ends\n"},
		east + "logs/coredns/coredns-previous.log": {"the log ends\n"},
		east + "metrics/coredns.txt":               {"the log ends\n"},
		east + "errors.txt":                        {"leases: no leases for you"},
		"west/errors.txt":                          {"API server: ", "connection refused"},
	} {
		for _, want := range wants {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s lacks %q:\n%s", name, want, files[name])
			}
		}
	}
	if failed != 2 || strings.Contains(files[east+"services.yaml"], "managedFields") {
		t.Errorf("%d errors, and\n%s", failed, files[east+"services.yaml"])
	}
	for name := range files {
		if strings.HasPrefix(name, "west/") && name != "west/errors.txt" {
			t.Errorf("there is %s of a cluster that does not answer", name)
		}
	}
	if files[east+"nodes.yaml"] == "" || files[east+"events.yaml"] == "" {
		t.Error("files are missing")
	}
}
