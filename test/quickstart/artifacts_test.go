// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// A release is a directory with the files of a release.
type release struct{ directory, version string }

// open returns the release in a directory, with the version in the name of its chart.
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

// image returns the name of an image in the documents and the chart.
func (r release) image(name string) string { return "ghcr.io/clusterset-dns/" + name + ":" + r.version }

// archive returns the name of the archive of kubectl-clusterset for this machine.
func (r release) archive() string {
	return "kubectl-clusterset_" + r.version + "_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
}

// A descriptor refers to a part of an image layout.
type descriptor struct {
	Digest      string
	Annotations map[string]string
	Platform    *struct{ OS, Architecture string }
}

// A document is an index, a manifest or a configuration of a layout, as of the OCI image specification.
type document struct {
	Manifests, Layers []descriptor
	Config            struct {
		descriptor
		Entrypoint []string
	}
}

// pull unpacks the programs from the release's images for this machine, as a node does that imports the layouts. It
// returns their paths by the names of the images.
func (r release) pull(t *testing.T) map[string]string {
	t.Helper()
	programs := map[string]string{}
	layouts, err := filepath.Glob(filepath.Join(r.directory, "images", "*"))
	must(t, err)
	for _, layout := range layouts {
		open := func(path string) (opened document) {
			text, err := os.ReadFile(path)
			must(t, errors.Join(err, json.Unmarshal(text, &opened)))
			return opened
		}
		blob := func(d descriptor) string {
			return filepath.Join(layout, "blobs", strings.Replace(d.Digest, ":", "/", 1))
		}
		image := open(filepath.Join(layout, "index.json")).Manifests[0]
		for _, platform := range open(blob(image)).Manifests {
			if platform.Platform.OS != runtime.GOOS || platform.Platform.Architecture != runtime.GOARCH {
				continue
			}
			manifest, folder := open(blob(platform)), t.TempDir()
			for _, layer := range manifest.Layers {
				_, err := process.Output(exec.Command("tar", "-xzf", blob(layer), "--no-same-owner", "-C", folder))
				must(t, err)
			}
			program := open(blob(manifest.Config.descriptor)).Config.Entrypoint[0]
			programs[image.Annotations["io.containerd.image.name"]] = filepath.Join(folder, program)
		}
	}
	if len(programs) != 3 {
		t.Fatalf("the release has the images %v for this machine, want 3", programs)
	}
	return programs
}
