// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAllClusters finds the contexts of the members of one cluster.
func TestAllClusters(t *testing.T) {
	const base = "GET /apis/coordination.k8s.io/v1/namespaces/clusterset-dns/leases"
	// Of a member, the Lease may have the UID of another cluster: id@uid.
	server := func(id string, members ...string) *api {
		leases := []string{}
		for _, other := range members {
			other, uid, lies := strings.Cut(other, "@")
			if !lies {
				uid = other
			}
			leases = append(leases, fmt.Sprintf(`{"metadata":{"name":"clusterset-dns-member-%[1]s","labels":`+
				`{"clusterset-dns.github.io/cluster":%[1]q},`+
				`"annotations":{"clusterset-dns.github.io/kube-system-uid":"uid-of-%[2]s"}}}`,
				other, uid))
		}
		namespace := fmt.Sprintf(`{"metadata":{"name":"kube-system","uid":"uid-of-%s"}}`, id)
		return newAPI(t, answersOfAll(map[string]string{
			"GET /api/v1/namespaces/kube-system": namespace,
			base:                                 `{"items":[` + strings.Join(leases, ",") + `]}`,
			base + "/clusterset-dns-heartbeat":   fmt.Sprintf(`{"spec":{"holderIdentity":%q}}`, id),
		}), nil)
	}
	east, west, lonely := server("east", "west"), server("west", "east", "north"), server("lonely")
	liar, twice := server("liar", "west@lonely"), server("twice", "west", "x@west")
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: east\nusers: [{name: u, user: {token: t}}]\ncontexts:\n"
	clusters := "clusters:\n"
	for name, url := range map[string]string{
		"east": east.URL, "a-west": west.URL, "b-west": west.URL, "lonely": lonely.URL, "liar": liar.URL, "twice": twice.URL,
		"dead": "https://127.0.0.1:1",
	} {
		text += fmt.Sprintf("- {name: %[1]s, context: {cluster: %[1]s, user: u}}\n", name)
		clusters += fmt.Sprintf("- {name: %s, cluster: {server: %q, insecure-skip-tls-verify: true}}\n", name, url)
	}
	if err := os.WriteFile(path, []byte(text+clusters), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"version --all-clusters":                  "",
		"version --all-clusters --context b-west": "reaches the members north of context b-west",
		"version --all-clusters --context lonely": "the cluster has no members",
		"version --all-clusters --context liar":   "context lonely: the cluster is lonely, and member west of context liar",
		"version --all-clusters --context twice":  "context a-west: the cluster is west, and member x of context twice",
		"version --all-clusters --context dead":   "connection refused",
		"version --all-clusters --contexts east":  "exclude each other",
		"version --all-clusters --token secret":   "--token applies to one cluster",
		"drain west --all-clusters --server x":    "--server applies to one cluster",
	} {
		var out, progress bytes.Buffer
		command := newCommand(streams{Out: &out, ErrOut: &progress})
		command.SetArgs(append(strings.Fields(line), "--kubeconfig", path))
		err := command.ExecuteContext(t.Context())
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) ||
				strings.Contains(want, "appl") && exitStatus(err) != exitUsage {
				t.Errorf("%s: got %v", line, err)
			}
			continue
		}
		if err != nil || progress.String() != "Selected contexts: east,a-west\n" ||
			!strings.Contains(out.String(), "a-west") || strings.Contains(out.String(), "b-west") {
			t.Errorf("%s: got %v:\n%s%s", line, err, out.String(), progress.String())
		}
	}
}
