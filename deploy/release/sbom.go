// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// sbomType is the media type of CycloneDX as JSON.
const sbomType types.MediaType = "application/vnd.cyclonedx+json"

// roots is the module with the CA certificates.
const roots = "golang.org/x/crypto/x509roots/fallback"

// bom returns the SBOM of a component: the version of Go, the other modules, and the modules of a program.
func (o options) bom(path string, component cyclonedx.Component, others ...*debug.Module) ([]byte, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	component.PackageURL = component.BOMRef
	component.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: o.created.Format(time.RFC3339), Component: &component}
	components, references := []cyclonedx.Component{}, []string{}
	stdlib := &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}
	for _, module := range slices.Concat([]*debug.Module{stdlib}, others, info.Deps) {
		if module.Replace != nil {
			module = module.Replace
		}
		reference := "pkg:golang/" + module.Path + "@" + module.Version
		components = append(components, cyclonedx.Component{
			BOMRef: reference, PackageURL: reference, Type: cyclonedx.ComponentTypeLibrary, Name: module.Path,
			Version: module.Version,
		})
		references = append(references, reference)
	}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: component.BOMRef, Dependencies: &references}}
	var text bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return text.Bytes(), err
}

// sbom returns the SBOM of an image, as a manifest that refers to the image.
func (p program) sbom(o options, path string, subject v1.Descriptor) (v1.Image, error) {
	own, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, fmt.Errorf("this program does not know its own modules: build it with module support")
	}
	at := slices.IndexFunc(own.Deps, func(module *debug.Module) bool { return module.Path == roots })
	if at < 0 {
		return nil, fmt.Errorf("module %s is not among this program's", roots)
	}
	text, err := o.bom(path, cyclonedx.Component{
		BOMRef: "pkg:oci/" + p.name + "@" + subject.Digest.String(), Type: cyclonedx.ComponentTypeContainer, Name: p.name, Version: o.version,
	}, own.Deps[at])
	if err != nil {
		return nil, err
	}
	// An artifact without an artifactType has the media type of its configuration as its type.
	manifest := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), sbomType)
	manifest, err = mutate.AppendLayers(manifest, static.NewLayer(text, sbomType))
	if err != nil {
		return nil, err
	}
	return mutate.Subject(manifest, subject).(v1.Image), nil
}
