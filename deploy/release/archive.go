// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// A build is a program and its target platform.
type build struct{ program, os, arch string }

// builds returns all builds of a release.
func builds() []build {
	var all []build
	for _, arch := range []string{"amd64", "arm64"} {
		for _, system := range []string{"darwin", "linux", "windows"} {
			all = append(all, build{"kubectl-clusterset", system, arch})
		}
		all = append(all, build{"clusterset-controller", "linux", arch}, build{"coredns", "linux", arch})
	}
	return all
}

// archives writes the archives of all builds with their SBOMs, and the other files of a release.
func archives(ctx context.Context, o options) error {
	license, err := os.ReadFile(filepath.Join(source, "LICENSE"))
	if err != nil {
		return err
	}
	changelog, err := os.ReadFile(filepath.Join(source, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	var plugins []plugin
	for _, b := range builds() {
		if len(o.platforms) > 0 && !slices.Contains(o.platforms, b.os+"/"+b.arch) {
			continue
		}
		path, err := o.compile(ctx, b.program, "", b.os, b.arch)
		if err != nil {
			return err
		}
		binary, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		packed, err := b.pack(fstest.MapFS{
			b.binary(): {Data: binary, Mode: 0o755, ModTime: o.created}, "LICENSE": {Data: license, Mode: 0o644, ModTime: o.created},
		})
		if err != nil {
			return err
		}
		if err := o.write(b.archive(o), packed); err != nil {
			return err
		}
		bom, err := o.bom(path, b.component(o))
		if err != nil {
			return err
		}
		if err := o.write(b.name(o)+".cdx.json", bom); err != nil {
			return err
		}
		if b.program == "kubectl-clusterset" {
			plugins = append(plugins, plugin{b, sha256.Sum256(packed)})
		}
	}
	if err := o.write("clusterset.yaml", krew(o, plugins)); err != nil {
		return err
	}
	text := notes(o.version, string(changelog))
	if text == nil {
		return fmt.Errorf("CHANGELOG.md has no section %s and no section Unreleased: add one", o.version)
	}
	return o.write("release-notes.md", text)
}

func (o options) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(o.out, name), content, 0o644)
}

// pack returns the archive of a build: a zip for Windows, else a compressed tar.
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

// binary returns the name of the program in the archive.
func (b build) binary() string {
	if b.os == "windows" {
		return b.program + ".exe"
	}
	return b.program
}

// component returns the SBOM's component for the program.
func (b build) component(o options) cyclonedx.Component {
	name := strings.TrimPrefix(repository, "https://") + "/cmd/" + b.program
	return cyclonedx.Component{
		BOMRef: "pkg:golang/" + name + "@v" + o.version, Type: cyclonedx.ComponentTypeApplication, Name: name, Version: "v" + o.version,
	}
}

func (b build) name(o options) string {
	return strings.Join([]string{b.program, o.version, b.os, b.arch}, "_")
}

// archive returns the name of the archive.
func (b build) archive(o options) string {
	if b.os == "windows" {
		return b.name(o) + ".zip"
	}
	return b.name(o) + ".tar.gz"
}

// notes returns the section of the changelog for a version or, without one, the section of unreleased changes, or nil.
func notes(version, changelog string) []byte {
	for _, title := range []string{version, "Unreleased"} {
		section := regexp.MustCompile(`(?ms)^## ` + regexp.QuoteMeta(title) + `(?: [^\n]*)?\n+(.*?)(?:^## |\z)`)
		if found := section.FindStringSubmatch(changelog); found != nil {
			return []byte(strings.TrimSpace(found[1]) + "\n")
		}
	}
	return nil
}
