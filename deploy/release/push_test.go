// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestPush pushes a layout with an index and an SBOM, and reads the registry.
func TestPush(t *testing.T) {
	silent := registry.Logger(log.New(io.Discard, "", 0))
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), silent))
	t.Cleanup(server.Close)
	o := options{images: t.TempDir(), version: "1.2.3"}
	o.registry = strings.TrimPrefix(server.URL, "http://") + "/clusterset-dns"

	image, err := random.Image(10, 1)
	must(t, err)
	subject, err := partial.Descriptor(image)
	must(t, err)
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image})
	written, err := layout.Write(filepath.Join(o.images, "coredns"), empty.Index)
	must(t, err)
	must(t, written.AppendIndex(index))
	must(t, written.AppendImage(mutate.Subject(mutate.ConfigMediaType(empty.Image, sbomType), *subject).(v1.Image)))
	must(t, program{name: "coredns"}.push(t.Context(), o))

	repository, err := name.NewRepository(o.registry + "/coredns")
	must(t, err)
	got, err := remote.Index(repository.Tag("1.2.3"))
	must(t, err)
	want, err := index.Digest()
	must(t, err)
	if digest, err := got.Digest(); err != nil || digest != want {
		t.Errorf("the tag is %s, %v; want %s", digest, err, want)
	}
	referrers, err := remote.Referrers(repository.Digest(subject.Digest.String()))
	must(t, err)
	if manifest, err := referrers.IndexManifest(); err != nil || len(manifest.Manifests) != 1 ||
		manifest.Manifests[0].ArtifactType != string(sbomType) {
		t.Errorf("SBOMs: %v, %v", manifest, err)
	}
}
