// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// built builds a program, checks all digests, and returns its options, and the images and their SBOMs by platform.
func built(t *testing.T, p program, platforms ...string) (o options, images, sboms map[string]v1.Image) {
	t.Helper()
	o = options{
		images: t.TempDir(), scratch: t.TempDir(), version: "v9.9.9", revision: "abc", created: time.Unix(1700000000, 0), platforms: platforms,
	}
	must(t, p.build(t.Context(), o))
	top, err := layout.ImageIndexFromPath(filepath.Join(o.images, p.name))
	must(t, err)
	must(t, validate.Index(top))
	manifest, err := top.IndexManifest()
	must(t, err)
	if called := manifest.Manifests[0].Annotations; called[refName] != o.version ||
		called[containerdName] != "ghcr.io/clusterset-dns/"+p.name+":"+o.version {
		t.Errorf("the layout has %v, want an index called %s", manifest.Manifests, o.version)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	must(t, err)
	all, err := index.IndexManifest()
	must(t, err)
	images, sboms = map[string]v1.Image{}, map[string]v1.Image{}
	for _, d := range all.Manifests {
		images[d.Platform.String()], err = index.Image(d.Digest)
		must(t, err)
		for _, other := range manifest.Manifests[1:] {
			sbom, err := top.Image(other.Digest)
			must(t, err)
			if m, err := sbom.Manifest(); err == nil && m.Subject.Digest == d.Digest && m.Config.MediaType == sbomType {
				sboms[d.Platform.String()] = sbom
			}
		}
	}
	if got := slices.Sorted(maps.Keys(sboms)); !slices.Equal(got, platforms) || len(images) != len(platforms) {
		t.Fatalf("SBOMs for %v of %d images, want both for %v", got, len(images), platforms)
	}
	return o, images, sboms
}

// TestImages builds the images and reads them.
func TestImages(t *testing.T) {
	digests := map[string]v1.Hash{}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			_, images, sboms := built(t, p, "linux/amd64", "linux/arm64")
			for platform, image := range images {
				config, err := image.ConfigFile()
				must(t, err)
				if c := config.Config; config.Platform().String() != platform || c.User != "65532:65532" ||
					!slices.Equal(c.Entrypoint, []string{"/" + p.folder}) ||
					!slices.Equal(slices.Sorted(maps.Keys(c.ExposedPorts)), p.ports) ||
					c.Labels["org.opencontainers.image.version"] != "v9.9.9" ||
					c.Labels["org.opencontainers.image.revision"] != "abc" {
					t.Errorf("configuration of %s: %+v", platform, config)
				}
				checkFiles(t, p, image, config.Architecture)
				checkSBOM(t, sboms[platform], p.name)
			}
			digests[p.name], _ = images["linux/"+runtime.GOARCH].Digest()
			digests["SBOM of "+p.name], _ = sboms["linux/"+runtime.GOARCH].Digest()
		})
	}
	o, images, sboms := built(t, programs[0], "linux/"+runtime.GOARCH)
	for what, again := range map[string]v1.Image{programs[0].name: images["linux/"+runtime.GOARCH], "SBOM of " + programs[0].name: sboms["linux/"+runtime.GOARCH]} {
		if digest, err := again.Digest(); err != nil || digest != digests[what] {
			t.Errorf("the second %s is %s, %v; the first was %s", what, digest, err, digests[what])
		}
	}
	checkPushed(t, o, programs[0], digests[programs[0].name])
}

// checkPushed pushes an image to a registry, and looks for the tag and the SBOM there.
func checkPushed(t *testing.T, o options, p program, image v1.Hash) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	o.registry = strings.TrimPrefix(server.URL, "http://") + "/clusterset-dns"
	must(t, p.push(t.Context(), o))
	repository, err := name.NewRepository(o.registry + "/" + p.name)
	must(t, err)
	index, err := remote.Index(repository.Tag(o.version))
	must(t, err)
	must(t, validate.Index(index))
	referrers, err := remote.Referrers(repository.Digest(image.String()))
	must(t, err)
	if manifest, err := referrers.IndexManifest(); err != nil || len(manifest.Manifests) != 1 ||
		manifest.Manifests[0].ArtifactType != string(sbomType) {
		t.Errorf("SBOMs: %v, %v", manifest, err)
	}
}

// checkFiles checks the files of the image: the program, and little else.
func checkFiles(t *testing.T, p program, image v1.Image, architecture string) {
	t.Helper()
	content, headers := map[string][]byte{}, map[string]*tar.Header{}
	layers, err := image.Layers()
	must(t, err)
	for _, layer := range layers {
		unpacked, err := layer.Uncompressed()
		must(t, err)
		for archive := tar.NewReader(unpacked); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			headers[header.Name] = header
			content[header.Name], err = io.ReadAll(archive)
			must(t, err)
			if header.Uid != 0 || header.Gid != 0 || header.Mode&0o022 != 0 || header.ModTime.Unix() != 1700000000 {
				t.Errorf("%s: %+v", header.Name, header)
			}
		}
	}
	want := []string{p.folder, "etc/", "etc/group", "etc/passwd", "etc/ssl/", "etc/ssl/certs/", "etc/ssl/certs/ca-certificates.crt"}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(content)); !slices.Equal(got, want) {
		t.Fatalf("files %v, want %v", got, want)
	}
	certificates := content["etc/ssl/certs/ca-certificates.crt"]
	if count := bytes.Count(certificates, []byte("BEGIN CERTIFICATE")); count < 50 || !x509.NewCertPool().AppendCertsFromPEM(certificates) {
		t.Errorf("%d CA certificates", count)
	}
	if header := headers[p.folder]; header.PAXRecords["SCHILY.xattr.security.capability"] != string(p.capabilities) || header.Mode != 0o755 {
		t.Errorf("%s: %+v", p.folder, header)
	}
	parsed, err := elf.NewFile(bytes.NewReader(content[p.folder]))
	must(t, err)
	if machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[architecture]; parsed.Machine != machine {
		t.Errorf("%s is for %s, the image for %s", p.folder, parsed.Machine, architecture)
	}
	if libraries, err := parsed.ImportedLibraries(); len(libraries) > 0 ||
		slices.ContainsFunc(parsed.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Errorf("%s is not static: %v, %v", p.folder, libraries, err)
	}
	if architecture != runtime.GOARCH {
		return
	}
	path := filepath.Join(t.TempDir(), p.folder)
	must(t, os.WriteFile(path, content[p.folder], 0o700))
	says(t, "v9.9.9", path, "--version")
	if p.folder == "coredns" {
		// If CoreDNS fails only for the missing credentials of a pod, it knows all directives of the chart's Corefile.
		values, err := os.ReadFile(filepath.Join(source, "deploy", "chart", "values.yaml"))
		must(t, err)
		_, corefile, _ := strings.Cut(string(values), "\n  corefile: |\n")
		corefile, _, _ = strings.Cut(corefile, "\n  resources:")
		must(t, os.WriteFile(path+".Corefile", []byte("(multicluster-options) {\n}\n"+corefile), 0o600))
		says(t, "the service account of the pod", path, "-conf", path+".Corefile")
	}
}

// says checks what a program prints, whether it succeeds or fails.
func says(t *testing.T, want, path string, args ...string) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); !bytes.Contains(output, []byte(want)) {
		t.Errorf("%s %v says %q, %v; want %q", path, args, output, err, want)
	}
}

// checkSBOM looks for modules that every program has.
func checkSBOM(t *testing.T, image v1.Image, program string) {
	t.Helper()
	layers, err := image.Layers()
	must(t, err)
	text, err := layers[0].Uncompressed()
	must(t, err)
	var sbom cyclonedx.BOM
	must(t, json.NewDecoder(text).Decode(&sbom))
	if c := sbom.Metadata.Component; sbom.BOMFormat != "CycloneDX" || c.Name != program || c.Version != "v9.9.9" {
		t.Errorf("the SBOM is a %s of %v", sbom.BOMFormat, c)
	}
	names, clouds := map[string]bool{}, 0
	for _, c := range *sbom.Components {
		if names[c.Name] = true; c.Version == "" || c.PackageURL != "pkg:golang/"+c.Name+"@"+c.Version {
			t.Errorf("component %v", c)
		}
		if strings.Contains(c.Name, "aws") || strings.Contains(c.Name, "Azure") || strings.HasPrefix(c.Name, "cloud.google.com/") {
			clouds++
		}
	}
	if (clouds > 0) != (program == "coredns") {
		t.Errorf("%s has %d modules of SDKs of clouds", program, clouds)
	}
	for _, module := range []string{"stdlib", "k8s.io/client-go", "sigs.k8s.io/mcs-api", roots} {
		if !names[module] {
			t.Errorf("%s is not in the SBOM", module)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
