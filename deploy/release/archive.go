// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"
	"time"
)

// A file of an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

// pack makes the archive of a build, in the format of its name.
func (b build) pack(o options, files []file) ([]byte, error) {
	var archive bytes.Buffer
	add, end := tarball(&archive, o.created)
	if strings.HasSuffix(b.archive(o), ".zip") {
		add, end = zipped(&archive, o.created)
	}
	for _, f := range files {
		if err := add(f); err != nil {
			return nil, fmt.Errorf("%s: file %s: %w", b.archive(o), f.name, err)
		}
	}
	err := end()
	return archive.Bytes(), err
}

func tarball(into *bytes.Buffer, modified time.Time) (add func(file) error, end func() error) {
	compressed := gzip.NewWriter(into)
	w := tar.NewWriter(compressed)
	add = func(f file) error {
		err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: modified})
		if err == nil {
			_, err = w.Write(f.content)
		}
		return err
	}
	return add, func() error {
		if err := w.Close(); err != nil {
			return err
		}
		return compressed.Close()
	}
}

func zipped(into *bytes.Buffer, modified time.Time) (add func(file) error, end func() error) {
	w := zip.NewWriter(into)
	add = func(f file) error {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: modified}
		header.SetMode(fs.FileMode(f.mode))
		part, err := w.CreateHeader(header)
		if err == nil {
			_, err = part.Write(f.content)
		}
		return err
	}
	return add, w.Close
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
