// SPDX-License-Identifier: Apache-2.0

// Package corefile holds the test that starts every example of the manual.
// The examples here are started and asked by test/deploy, on a real API server.
package corefile

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"

	_ "github.com/clusterset-dns/clusterset-dns/cmd/coredns/command" // CoreDNS's own plugins.
	_ "github.com/clusterset-dns/clusterset-dns/plugin/multicluster" // The plugin multicluster.
)

func TestMain(m *testing.M) {
	caddy.Quiet, dnsserver.Quiet = true, true
	before := slices.Index(dnsserver.Directives, "kubernetes") // as in cmd/coredns
	if err := dnsserver.SetDirectives(slices.Insert(slices.Clone(dnsserver.Directives), before,
		"multicluster")); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestEveryCorefileInTheManualStarts(t *testing.T) {
	text, err := os.ReadFile("../plugin/multicluster/README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)~~~ corefile\n(.*?)~~~").FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Fatal("no Corefile in the manual")
	}
	kubeconfig := emptyCluster(t)
	// In one server: the plugin kubernetes sets the logger of all client-go anew at each start, while what it started
	// before may still log.
	var corefile strings.Builder
	for i, block := range blocks {
		corefile.WriteString(
			regexp.MustCompile(`(?m)^\S+ \{$`).ReplaceAllString(block[1], fmt.Sprintf("block%d.:53 {", i)))
	}
	start(t, "README.md", atHome(corefile.String(), kubeconfig))
}

// start starts and stops a server.
func start(t *testing.T, path, corefile string) {
	t.Helper()
	instance, err := caddy.Start(caddy.CaddyfileInput{
		Filepath: path, Contents: []byte(corefile), ServerTypeName: "dns",
	})
	if err != nil {
		t.Fatalf("%v in\n%s", err, corefile)
	}
	for _, err := range instance.ShutdownCallbacks() {
		t.Error(err)
	}
	if err := instance.Stop(); err != nil {
		t.Error(err)
	}
}

var (
	kubeconfigLine = regexp.MustCompile(`(?m)^\s*(kubeconfig|startup_timeout) .*\n`)
	pluginLine     = regexp.MustCompile(`(?m)^(\s*)(multicluster|kubernetes)\b([^{\n]*)(\{)?\n`)
	metricsLine    = regexp.MustCompile(`(?m)^(\s*)(prometheus|ready|health)\b(?: :\d+)?`)
)

// atHome is the Corefile with the addresses and the credentials of this test.
func atHome(corefile, kubeconfig string) string {
	corefile = kubeconfigLine.ReplaceAllString(corefile, "")
	corefile = pluginLine.ReplaceAllStringFunc(corefile, func(line string) string {
		parts := pluginLine.FindStringSubmatch(line)
		block := fmt.Sprintf("%s%s%s{\n kubeconfig %s\n startup_timeout 1ms\n", parts[1], parts[2], parts[3]+" ",
			kubeconfig)
		if parts[4] == "" {
			block += "}\n"
		}
		return block
	})
	corefile = metricsLine.ReplaceAllString(corefile, "${1}${2} 127.0.0.1:0")
	corefile = strings.ReplaceAll(corefile, "/etc/resolv.conf", "127.0.0.1:53")
	corefile = strings.NewReplacer("    loop\n", "", "lameduck 5s", "lameduck 1ms").Replace(corefile)
	return strings.Replace(corefile, ":53 {", ":0 {\n bind 127.0.0.1", 1)
}

// emptyCluster is the kubeconfig of an API server that knows nothing.
func emptyCluster(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return kubeconfigFor(t, server.URL)
}

func kubeconfigFor(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(
		`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
		clusters: [{name: c, cluster: {server: %q}}]}`, url)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
