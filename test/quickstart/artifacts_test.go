// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/images"
)

// A release is the directory of its files.
type release struct{ directory, version string }

// open finds out the version of a release, by the name of its chart.
func open(t *testing.T, directory string) release {
	t.Helper()
	charts, err := filepath.Glob(filepath.Join(directory, "clusterset-dns-*.tgz"))
	if err != nil || len(charts) != 1 {
		t.Fatalf("%s has the charts %q: %v", directory, charts, err)
	}
	version := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(charts[0]), ".tgz"), "clusterset-dns-")
	return release{directory, version}
}

func (r release) chart() string {
	return filepath.Join(r.directory, "clusterset-dns-"+r.version+".tgz")
}
func (r release) manifest() string { return filepath.Join(r.directory, "manifest.yaml") }

// image is the name that the documents and the chart give an image.
func (r release) image(name string) string { return "ghcr.io/clusterset-dns/" + name + ":" + r.version }

// archive is that of kubectl-clusterset for this machine.
func (r release) archive() string {
	return "kubectl-clusterset_" + r.version + "_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
}

// pull unpacks the programs in the images of the release for this machine, as a node does that imports the layouts. It returns
// them by the names of the images.
func (r release) pull(t *testing.T) map[string]string {
	t.Helper()
	programs := map[string]string{}
	layouts, err := filepath.Glob(filepath.Join(r.directory, "images", "*"))
	must(t, err)
	for _, folder := range layouts {
		layout := images.Layout(folder)
		image := layout.Index(t).Manifests[0]
		for _, platform := range layout.Manifest(t, image).Manifests {
			if platform.Platform.OS != runtime.GOOS || platform.Platform.Architecture != runtime.GOARCH {
				continue
			}
			manifest := layout.Manifest(t, platform)
			program := layout.Configuration(t, manifest).Config.Entrypoint[0]
			path := filepath.Join(t.TempDir(), program)
			must(t, os.WriteFile(path, layout.Files(t, manifest)[strings.TrimPrefix(program, "/")].Data, 0o700))
			programs[image.Annotations["io.containerd.image.name"]] = path
		}
	}
	if len(programs) != 3 {
		t.Fatalf("the release has the images %v for this machine, want 3", programs)
	}
	return programs
}
