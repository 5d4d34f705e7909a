// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push copies the layout of a program to a registry, with the credentials of the docker CLI: the index, tagged with the
// version, and the SBOMs that refer to its images. It prints the reference and digest of the index.
func (p program) push(ctx context.Context, o options) error {
	written, err := layout.ImageIndexFromPath(filepath.Join(o.images, p.name))
	if err != nil {
		return err
	}
	top, err := written.IndexManifest()
	if err != nil {
		return err
	}
	repository, err := name.NewRepository(o.registry + "/" + p.name)
	if err != nil {
		return err
	}
	with := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	for _, d := range top.Manifests {
		if !d.MediaType.IsIndex() {
			sbom, err := written.Image(d.Digest)
			if err != nil {
				return err
			}
			if err := remote.Write(repository.Digest(d.Digest.String()), sbom, with...); err != nil {
				return fmt.Errorf("SBOM: %w", err)
			}
			continue
		}
		index, err := written.ImageIndex(d.Digest)
		if err != nil {
			return err
		}
		if err := remote.WriteIndex(repository.Tag(o.version), index, with...); err != nil {
			return err
		}
		fmt.Println(repository.Digest(d.Digest.String()))
	}
	return nil
}
