// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

func TestWrongFlags(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: x,
clusters: [{name: c, cluster: {server: "https://192.0.2.1"}}], users: [{name: u, user: {token: t}}],
contexts: [{name: x, context: {cluster: c, user: u}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for args, want := range map[string]string{
		"--kubeconfig= --cluster-id=east":      "set --kubeconfig", // outside of a cluster
		"--no-such-flag":                       "no-such-flag",
		"an-argument":                          "an-argument",
		"--kubeconfig=/does/not/exist":         "/does/not/exist",
		"--member-services=-1":                 "--member-services -1",
		"--cluster-id=a_b --bind-address=":     "a_b",
		"--logging-format=xml":                 "use text or json",
		"--bind-address=nowhere":               "--bind-address",
		"--denied-namespaces=[ --cluster-id=a": "--denied-namespaces",
		"--stale-after=5s --cluster-id=a":      "--stale-after",
		"--gone-after=1s --cluster-id=a":       "--gone-after",
		"--accept=[ --cluster-id=a":            "--accept",
		"--prefer=> --cluster-id=a":            `">" is no list of tiers`,
	} {
		command := Command("")
		command.SetArgs(append([]string{"--kubeconfig=" + kubeconfig, "--bind-address=127.0.0.1:0"},
			strings.Fields(args)...))
		if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", args, err, want)
		}
	}
}

// TestJSONLog: each line is an object with the fields that programs look for.
func TestJSONLog(t *testing.T) {
	var out bytes.Buffer
	logger := logr.FromSlogHandler(jsonHandler(&out, 2)).WithValues("member", "west")
	web := types.NamespacedName{Namespace: "demo", Name: "web"}
	logger.Info("One", "service", web)
	logger.Error(errors.New("no answer"), "Two", "lease", klog.KRef("clusterset-dns", "heartbeat"))
	logger.V(2).Info("Three")
	logger.V(3).Info("too much")
	const want = `{T,"level":"INFO","msg":"One","member":"west","service":{"name":"web","namespace":"demo"}}
{T,"level":"ERROR","msg":"Two","member":"west","err":"no answer","lease":{"name":"heartbeat","namespace":"clusterset-dns"}}
{T,"level":"DEBUG+2","msg":"Three","member":"west"}
`
	if got := regexp.MustCompile(`"time":"20[^"]+"`).ReplaceAllString(out.String(), "T"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
