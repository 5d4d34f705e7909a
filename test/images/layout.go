// SPDX-License-Identifier: Apache-2.0

// Package images opens the images that are built for a release.
package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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
	MediaType, Digest string
	Annotations       map[string]string
	Platform          *struct{ OS, Architecture string }
}

// A Manifest is an index of others, or that of an image.
type Manifest struct {
	Manifests, Layers []Descriptor
	Config            Descriptor
	Subject           *Descriptor
}

// A Configuration is that of an image.
type Configuration struct {
	OS, Architecture string
	Config           struct {
		User         string
		Entrypoint   []string
		Labels       map[string]string
		ExposedPorts map[string]any
	}
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// Blob is a part of the layout, whose digest is right.
func (l Layout) Blob(t testing.TB, d Descriptor) []byte {
	t.Helper()
	algorithm, digest, _ := strings.Cut(d.Digest, ":")
	content := read(t, filepath.Join(string(l), "blobs", algorithm, digest))
	if sum := sha256.Sum256(content); algorithm != "sha256" || hex.EncodeToString(sum[:]) != digest {
		t.Fatalf("blob %s has another digest", d.Digest)
	}
	return content
}

// Index is what the layout begins with.
func (l Layout) Index(t testing.TB) Manifest {
	t.Helper()
	return decode[Manifest](t, read(t, filepath.Join(string(l), "index.json")))
}

// Manifest is the one that a descriptor refers to.
func (l Layout) Manifest(t testing.TB, d Descriptor) Manifest {
	t.Helper()
	return decode[Manifest](t, l.Blob(t, d))
}

// Configuration is that of the image that has a manifest.
func (l Layout) Configuration(t testing.TB, m Manifest) Configuration {
	t.Helper()
	return decode[Configuration](t, l.Blob(t, m.Config))
}

// A File is one of an image.
type File struct {
	*tar.Header
	Data []byte
}

// Files are those of all layers of an image, by their paths. The digests of the layers must be the configuration's.
func (l Layout) Files(t testing.TB, m Manifest) map[string]File {
	t.Helper()
	ids := l.Configuration(t, m).RootFS.DiffIDs
	if len(m.Layers) != len(ids) {
		t.Fatalf("%d layers, %d in the configuration", len(m.Layers), len(ids))
	}
	all := map[string]File{}
	for i, d := range m.Layers {
		// The race detector makes Go's own decompression take a minute.
		gzip := exec.CommandContext(t.Context(), "gzip", "--decompress", "--stdout")
		gzip.Stdin, gzip.Stderr = bytes.NewReader(l.Blob(t, d)), os.Stderr
		unpacked, err := gzip.Output()
		if err != nil {
			t.Fatalf("unpack layer %d: %v", i, err)
		}
		if sum := sha256.Sum256(unpacked); "sha256:"+hex.EncodeToString(sum[:]) != ids[i] {
			t.Errorf("layer %d has another digest than in the configuration", i)
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
