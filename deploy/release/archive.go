// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io/fs"
	"runtime/debug"
	"strings"
	"time"
)

// pack makes the archive of a build: a zip for Windows.
func (b build) pack(files fs.FS) ([]byte, error) {
	var archive bytes.Buffer
	if b.os == "windows" {
		w := zip.NewWriter(&archive)
		err := errors.Join(w.AddFS(files), w.Close())
		return archive.Bytes(), err
	}
	compressed := gzip.NewWriter(&archive)
	w := tar.NewWriter(compressed)
	err := errors.Join(w.AddFS(files), w.Close(), compressed.Close())
	return archive.Bytes(), err
}

// A component of an SBOM in the format CycloneDX 1.6.
type component struct {
	Ref      string `json:"bom-ref"`
	Type     string `json:"type"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Purl     string `json:"purl"`
	Licenses any    `json:"licenses,omitempty"`
}

func module(kind, path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{Ref: purl, Type: kind, Name: path, Version: version, Purl: purl}
}

// sbom lists the modules that a program is made of, and the version of Go.
func (b build) sbom(o options, path string) ([]byte, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	program := module("application", info.Path, "v"+o.version)
	program.Licenses = []any{map[string]any{"license": map[string]string{"id": "Apache-2.0"}}}
	modules := append([]*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}, info.Deps...)
	components, references := []component{}, []string{}
	for _, each := range modules {
		if each.Replace != nil {
			each = each.Replace
		}
		c := module("library", each.Path, each.Version)
		components, references = append(components, c), append(references, c.Ref)
	}
	text, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata":   map[string]any{"timestamp": o.created.Format(time.RFC3339), "component": program},
		"components": components,
		"dependencies": []any{
			map[string]any{"ref": program.Ref, "dependsOn": references},
		},
	}, "", "  ")
	return append(text, '\n'), err
}
