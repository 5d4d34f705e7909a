// SPDX-License-Identifier: Apache-2.0

// Package images opens the images that are built for a release, as a node does. The tests of tools/images hold what is in
// them.
package images

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Layout is the folder of an OCI image layout, as of the image specification.
type Layout string

// A Descriptor refers to a part of a layout.
type Descriptor struct {
	Digest      string
	Annotations map[string]string
	Platform    *struct{ OS, Architecture string }
}

// A Manifest is an index of others, or that of an image.
type Manifest struct {
	Manifests, Layers []Descriptor
	Config            Descriptor
}

// A Configuration is that of an image.
type Configuration struct{ Config struct{ Entrypoint []string } }

func (l Layout) blob(t testing.TB, d Descriptor) []byte {
	t.Helper()
	return read(t, filepath.Join(string(l), "blobs", strings.Replace(d.Digest, ":", "/", 1)))
}

// Index is what the layout begins with.
func (l Layout) Index(t testing.TB) Manifest {
	t.Helper()
	return decode[Manifest](t, read(t, filepath.Join(string(l), "index.json")))
}

// Manifest is the one that a descriptor refers to.
func (l Layout) Manifest(t testing.TB, d Descriptor) Manifest {
	t.Helper()
	return decode[Manifest](t, l.blob(t, d))
}

// Configuration is that of the image that has a manifest.
func (l Layout) Configuration(t testing.TB, m Manifest) Configuration {
	t.Helper()
	return decode[Configuration](t, l.blob(t, m.Config))
}

// A File is one of an image.
type File struct {
	*tar.Header
	Data []byte
}

// Files are those of all layers of an image, by their paths.
func (l Layout) Files(t testing.TB, m Manifest) map[string]File {
	t.Helper()
	all := map[string]File{}
	for i, d := range m.Layers {
		// The race detector makes Go's own decompression take a minute.
		gzip := exec.CommandContext(t.Context(), "gzip", "--decompress", "--stdout")
		gzip.Stdin, gzip.Stderr = bytes.NewReader(l.blob(t, d)), os.Stderr
		unpacked, err := gzip.Output()
		if err != nil {
			t.Fatalf("unpack layer %d: %v", i, err)
		}
		archive := tar.NewReader(bytes.NewReader(unpacked))
		for {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			all[header.Name] = File{header, data}
		}
	}
	return all
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func decode[T any](t testing.TB, text []byte) (value T) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return value
}
