// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
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

// archive returns the name of the archive of a program for this machine.
func (r release) archive(program string) string {
	return program + "_" + r.version + "_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
}

// unpack unpacks an archive of the release, and returns the path of its program.
func (r release) unpack(t *testing.T, program string) string {
	t.Helper()
	folder := t.TempDir()
	_, err := process.Output(exec.Command("tar", "-xzf", filepath.Join(r.directory, r.archive(program)), "-C", folder))
	must(t, err)
	return filepath.Join(folder, program)
}
