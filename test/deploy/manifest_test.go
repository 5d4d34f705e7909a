// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/mcs-api/config/crd"
)

// TestManifestsAreCurrent renders the plain manifests anew.
func TestManifestsAreCurrent(t *testing.T) {
	into := t.TempDir()
	t.Setenv("HELM", helm(t))
	run(t, "", root+"/deploy/render", into)
	for _, file := range []string{"manifest.yaml", "rbac.yaml", "coredns-rbac.yaml"} {
		want, got := read(t, filepath.Join(into, file)), read(t, filepath.Join(root, "deploy", file))
		if difference := cmp.Diff(want, got); difference != "" {
			t.Errorf("deploy/%s is not what the chart gives: run `make manifest` (- chart, + file):\n%s", file, difference)
		}
	}
}

// TestCRDsAreCurrent holds the chart's copies against the module's files.
func TestCRDsAreCurrent(t *testing.T) {
	for file, want := range map[string][]byte{
		"multicluster.x-k8s.io_serviceexports.yaml": crd.ServiceExportCRD,
		"multicluster.x-k8s.io_serviceimports.yaml": crd.ServiceImportCRD,
	} {
		if got := read(t, filepath.Join(chart, "files", "crds", file)); got != string(want) {
			t.Errorf("deploy/chart/files/crds/%s is not that of sigs.k8s.io/mcs-api: run `make manifest`", file)
		}
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}
