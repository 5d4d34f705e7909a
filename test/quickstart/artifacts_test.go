// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
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

// A descriptor refers to a part of an OCI image layout.
type descriptor struct {
	Digest      string
	Annotations map[string]string
	Platform    struct{ OS, Architecture string }
}

// read decodes a part of a layout, whose digest must be right.
func (d descriptor) read(t *testing.T, layout string, into any) (path string) {
	t.Helper()
	algorithm, digest, _ := strings.Cut(d.Digest, ":")
	path = filepath.Join(layout, "blobs", algorithm, digest)
	content, err := os.ReadFile(path)
	must(t, err)
	if sum := sha256.Sum256(content); algorithm != "sha256" || hex.EncodeToString(sum[:]) != digest {
		t.Fatalf("%s has another digest", path)
	}
	if into != nil {
		if err := json.Unmarshal(content, into); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return path
}

// pull unpacks the images of the release for this machine, as a node does that imports the layouts. It returns the program
// and the other files of each, by its name.
func (r release) pull(t *testing.T) (programs map[string]string, files map[string]map[string]string) {
	t.Helper()
	programs, files = map[string]string{}, map[string]map[string]string{}
	layouts, err := filepath.Glob(filepath.Join(r.directory, "images", "*"))
	must(t, err)
	for _, layout := range layouts {
		var top struct{ Manifests []descriptor }
		text, err := os.ReadFile(filepath.Join(layout, "index.json"))
		must(t, err)
		must(t, json.Unmarshal(text, &top))
		name := top.Manifests[0].Annotations["io.containerd.image.name"]
		var index struct{ Manifests []descriptor }
		top.Manifests[0].read(t, layout, &index)
		for _, platform := range index.Manifests {
			if platform.Platform.OS != runtime.GOOS || platform.Platform.Architecture != runtime.GOARCH {
				continue
			}
			var manifest struct {
				Config descriptor
				Layers []descriptor
			}
			platform.read(t, layout, &manifest)
			var config struct{ Config struct{ Entrypoint []string } }
			manifest.Config.read(t, layout, &config)
			unpacked := t.TempDir()
			for _, layer := range manifest.Layers {
				run(t, "tar", "-xzf", layer.read(t, layout, nil), "-C", unpacked)
			}
			programs[name] = filepath.Join(unpacked, config.Config.Entrypoint[0])
			files[name] = others(t, unpacked, config.Config.Entrypoint[0])
		}
	}
	if len(programs) != 3 {
		t.Fatalf("the release has the images %v for this machine, want 3", programs)
	}
	return programs, files
}

// others are the files of an image besides its program.
func others(t *testing.T, unpacked, program string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(unpacked, func(path string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, unpacked)
		if err != nil || !entry.Type().IsRegular() || name == program {
			return err
		}
		content, err := os.ReadFile(path)
		found[name] = string(content)
		return err
	})
	must(t, err)
	return found
}

func run(t *testing.T, program string, args ...string) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, output)
	}
}
