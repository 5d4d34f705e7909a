// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/mcs-api/config/crd"
)

// TestManifestsAreCurrent renders the plain manifests and the README of the chart anew.
func TestManifestsAreCurrent(t *testing.T) {
	into := t.TempDir()
	t.Setenv("HELM", helm(t))
	run(t, "", root+"/deploy/render", into)
	for _, file := range []string{"manifest.yaml", "rbac.yaml", "coredns-rbac.yaml", "chart/README.md"} {
		want, got := read(t, filepath.Join(into, file)), read(t, filepath.Join(root, "deploy", file))
		if difference := cmp.Diff(want, got); difference != "" {
			t.Errorf("deploy/%s is not what the chart gives: run `make manifest` (- chart, + file):\n%s", file, difference)
		}
	}
}

// TestEveryValueIsInTheReadme holds the lists against the values as a parser of YAML reads them.
func TestEveryValueIsInTheReadme(t *testing.T) {
	readme := read(t, filepath.Join(chart, "README.md"))
	var look func(prefix string, values map[string]any) int
	look = func(prefix string, values map[string]any) (count int) {
		for key, value := range values {
			name := regexp.QuoteMeta(prefix + key)
			row := regexp.MustCompile("(?m)^(- `" + name + "` \\([`\\[]|" + name + ": .)").MatchString(readme)
			below, _ := value.(map[string]any)
			if !row && len(below) > 0 {
				count += look(prefix+key+".", below)
				continue
			}
			if count++; !row {
				t.Errorf("deploy/chart/README.md lacks %s%s, or its default", prefix, key)
			}
		}
		return count
	}
	if count := look("", parse(t, read(t, filepath.Join(chart, "values.yaml")))); count < 50 {
		t.Errorf("only %d values", count)
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
