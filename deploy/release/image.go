// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// refName is the annotation with which tools find an image in a layout.
const refName = "org.opencontainers.image.ref.name"

// containerdName is the annotation with which containerd names an imported image. It is the name of the released image,
// so that nodes with an imported image do not pull it.
const containerdName = "io.containerd.image.name"

// build writes the OCI layout of a program: an index with an image per platform, and an SBOM that refers to each image.
func (p program) build(ctx context.Context, o options) error {
	var index v1.ImageIndex = empty.Index
	var sboms []v1.Image
	platforms := o.platforms
	if len(platforms) == 0 {
		platforms = []string{"linux/amd64", "linux/arm64"}
	}
	for _, text := range platforms {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return fmt.Errorf("platform %q: %w", text, err)
		}
		path, err := o.compile(ctx, p.folder, p.tags, platform.OS, platform.Architecture)
		if err != nil {
			return err
		}
		image, err := p.image(o, platform, path)
		if err != nil {
			return fmt.Errorf("image for %s: %w", platform, err)
		}
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
		subject, err := partial.Descriptor(image)
		if err != nil {
			return err
		}
		sbom, err := p.sbom(o, path, *subject)
		if err != nil {
			return fmt.Errorf("SBOM for %s: %w", platform, err)
		}
		sboms = append(sboms, sbom)
	}
	index = mutate.Annotations(index, o.labels(p)).(v1.ImageIndex)

	to := filepath.Join(o.images, p.name)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	written, err := layout.Write(to, empty.Index)
	if err != nil {
		return err
	}
	annotations := map[string]string{
		refName:        o.version,
		containerdName: "ghcr.io/clusterset-dns/" + p.name + ":" + o.version,
	}
	if err := written.AppendIndex(index, layout.WithAnnotations(annotations)); err != nil {
		return err
	}
	for _, sbom := range sboms {
		if err := written.AppendImage(sbom); err != nil {
			return err
		}
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s:%s is %s in %s\n", p.name, o.version, digest, to)
	return nil
}

// labels returns the labels that the OCI image specification defines.
func (o options) labels(p program) map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":       p.name,
		"org.opencontainers.image.description": p.description,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "https://github.com/clusterset-dns/clusterset-dns",
		"org.opencontainers.image.version":     o.version,
	}
	if o.revision != "" {
		labels["org.opencontainers.image.revision"] = o.revision
	}
	return labels
}

// image returns the image of a program for a platform: the base files and the program.
func (p program) image(o options, platform *v1.Platform, path string) (v1.Image, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, part := range []struct {
		what  string
		files []file
	}{
		{"user and CA certificates", base()},
		{"program", []file{{name: p.folder, mode: 0o755, content: content, capabilities: p.capabilities}}},
	} {
		made, err := layer(part.files, o.created)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{Layer: made, MediaType: types.OCILayer, History: v1.History{
			Created: v1.Time{Time: o.created}, CreatedBy: "deploy/release", Comment: part.what,
		}})
		if err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Created = v1.Time{Time: o.created}
	config.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		Entrypoint:   []string{"/" + p.folder},
		Env:          []string{"PATH=/"},
		WorkingDir:   "/",
		ExposedPorts: map[string]struct{}{},
		Labels:       o.labels(p),
	}
	for _, port := range p.ports {
		config.Config.ExposedPorts[port] = struct{}{}
	}
	return mutate.ConfigFile(image, config)
}
