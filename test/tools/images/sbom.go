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

// roots is the module that the CA certificates come from.
const roots = "golang.org/x/crypto/x509roots/fallback"

// sbom is what an image is made of, as a manifest that refers to the image.
func (p program) sbom(o options, path string, subject v1.Descriptor) (v1.Image, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	own, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, fmt.Errorf("this program does not know its own modules: build it with module support")
	}
	at := slices.IndexFunc(own.Deps, func(module *debug.Module) bool { return module.Path == roots })
	if at < 0 {
		return nil, fmt.Errorf("module %s is not among this program's", roots)
	}
	modules := append(
		[]*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}, own.Deps[at]},
		info.Deps...)

	bom := cyclonedx.NewBOM()
	subjectReference := "pkg:oci/" + p.name + "@" + subject.Digest.String()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: o.created.Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: subjectReference, PackageURL: subjectReference, Type: cyclonedx.ComponentTypeContainer,
			Name: p.name, Version: o.version,
			Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		},
	}
	components, references := []cyclonedx.Component{}, []string{}
	for _, module := range modules {
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
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: subjectReference, Dependencies: &references}}

	var text bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return nil, err
	}
	// The media type of the configuration is the type of an artifact that has no other.
	manifest := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), sbomType)
	manifest, err = mutate.AppendLayers(manifest, static.NewLayer(text.Bytes(), sbomType))
	if err != nil {
		return nil, err
	}
	return mutate.Subject(manifest, subject).(v1.Image), nil
}
