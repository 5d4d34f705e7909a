// SPDX-License-Identifier: Apache-2.0

package member

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// pluginFile makes the test binary a credential plugin: it counts its runs in that file. The tokens t1 and t2 have
// ended when they are issued; later ones last for an hour.
const pluginFile = "CLUSTERSET_TEST_PLUGIN"

func TestMain(m *testing.M) {
	file := os.Getenv(pluginFile)
	if file == "" {
		os.Exit(m.Run())
	}
	runs, _ := os.ReadFile(file)
	runs = append(runs, '.')
	if err := os.WriteFile(file, runs, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	expires := time.Now().Add(time.Hour)
	if len(runs) <= 2 {
		expires = time.Now().Add(-time.Second)
	}
	fmt.Printf(`{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t%d", "expirationTimestamp": %q}}`,
		len(runs), expires.UTC().Format(time.RFC3339))
}

// TestExecPlugin reads with a real plugin: it runs only if its command is allowed, not before a request, and again when
// its credential has ended.
func TestExecPlugin(t *testing.T) {
	var tokens []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}))
	defer server.Close()
	plugin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	runs, path := filepath.Join(folder, "runs"), filepath.Join(folder, "kubeconfig")
	text := kubeconfig(fmt.Sprintf(
		`{exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: Never, env: [{name: %s, value: %q}]}}`,
		plugin, pluginFile, runs), fmt.Sprintf(`{server: %q}`, server.URL))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, commands := range [][]string{nil, {filepath.Base(plugin)}, {filepath.Dir(plugin)}, {"/elsewhere/plugin"}} {
		if _, err := LoadKubeconfig(path, "", commands); err == nil || !strings.Contains(err.Error(), "--exec-commands="+plugin) {
			t.Errorf("only %q may run: got %v", commands, err)
		}
	}
	if _, err := ParseKubeconfig([]byte(text)); err == nil {
		t.Error("a Secret names a program")
	}
	credential, err := LoadKubeconfig(path, "", []string{"/elsewhere/plugin", plugin})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(runs); err == nil {
		t.Error("the plugin ran before there was a request")
	}
	credential.Config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	client, closeConnections, err := newHTTPClient(credential.Config, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConnections()
	for range 5 {
		request(t, client, server.URL)
	}
	if got := strings.Join(tokens, " "); got != "t1 t2 t3 t3 t3" {
		t.Errorf("got the tokens %s", got)
	}
}

func TestAdmitExec(t *testing.T) {
	allowed := []string{"aws", "/plugins/gke"}
	for command, want := range map[string]bool{
		"aws": true, "/plugins/gke": true,
		"gke": false, "AWS": false, "/usr/bin/aws": false, "/plugins/../plugins/gke": false, "": false, "*": false,
	} {
		if err := admitExec(&clientcmdapi.ExecConfig{Command: command}, allowed); (err == nil) != want {
			t.Errorf("%q: got %v", command, err)
		}
	}
	if err := admitExec(nil, nil); err != nil {
		t.Errorf("no plugin: %v", err)
	}
}
