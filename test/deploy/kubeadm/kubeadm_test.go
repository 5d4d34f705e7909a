// SPDX-License-Identifier: Apache-2.0

// Package kubeadm tests what `kubeadm upgrade` makes of the Corefiles that `kubectl clusterset coredns enable` writes. It
// has no kubeadm, but the library with which kubeadm checks and migrates Corefiles.
package kubeadm

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/corefile-migration/migration"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
)

// corefile is that of kubeadm.
func corefile(t *testing.T) *coredns.Corefile {
	t.Helper()
	text, err := os.ReadFile("../../quickstart/live/coredns.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var object struct {
			Kind string            `json:"kind"`
			Data map[string]string `json:"data"`
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		if object.Kind == "ConfigMap" {
			parsed, err := coredns.ParseCorefile(object.Data[coredns.Key])
			if err != nil {
				t.Fatal(err)
			}
			return parsed
		}
	}
	t.Fatal("no ConfigMap")
	return nil
}

// TestUpgrade: what the check CoreDNSUnsupportedPlugins of kubeadm finds decides whether `kubeadm upgrade` needs
// --ignore-preflight-errors. The migration keeps the zone in any case.
func TestUpgrade(t *testing.T) {
	const from, to, zone = "1.12.2", "1.14.2", "clusterset.local"
	for _, test := range []struct {
		way  coredns.Way
		want []string // what is not supported
	}{
		{coredns.Way{}, nil},
		{coredns.Way{Mode: coredns.ByKubernetes}, []string{"kubernetes multicluster"}},
		{coredns.Way{Mode: coredns.ByForward, Servers: []string{"10.96.0.99"}}, nil},
		{coredns.Way{Mode: coredns.ByMulticluster, ClusterID: "east"}, []string{"cluster", "import"}},
	} {
		parsed := corefile(t)
		text := parsed.String()
		if test.way.Mode != "" {
			var err error
			if text, err = parsed.Enable(zone, test.way); err != nil {
				t.Fatal(err)
			}
		}
		notices, err := migration.Unsupported(from, to, text)
		if err != nil {
			t.Fatalf("%s: %v", test.way.Mode, err)
		}
		var got []string
		for _, notice := range notices {
			if what := strings.TrimSpace(notice.Plugin + " " + notice.Option); !slices.Contains(got, what) {
				got = append(got, what)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: not supported: %v, want %v", test.way.Mode, got, test.want)
		}
		migrated, err := migration.Migrate(from, to, text, false)
		if err != nil {
			t.Fatalf("%s: %v", test.way.Mode, err)
		}
		after, err := coredns.ParseCorefile(migrated)
		if err != nil {
			t.Fatalf("%s: %v", test.way.Mode, err)
		}
		if by := after.By(zone); by != test.way.Mode {
			t.Errorf("%s: after the migration, the zone is served by %q in\n%s", test.way.Mode, by, migrated)
		}
	}
}
