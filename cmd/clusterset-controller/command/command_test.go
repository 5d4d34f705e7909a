// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
