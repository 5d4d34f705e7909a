// SPDX-License-Identifier: Apache-2.0

// Command release builds what a release has besides the images and the chart:
// archives of the programs with SBOMs, the manifest for krew, the release
// notes, and the checksums of all files in the directory. The same source and
// toolchain give the same bytes. It runs at the root of the repository, by
// `make release`.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"
	"time"
)

// options are what the command line says.
type options struct {
	version string
	created time.Time
	out     string
	// platforms are those to build for, as GOOS/GOARCH; all if empty.
	platforms []string
}

// A build is a program for a platform.
type build struct{ program, os, arch string }

// builds are all of a release.
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

func main() {
	var o options
	var epoch int64
	var platforms string
	flag.StringVar(&o.version, "version", "", "`version`, without a leading v")
	flag.Int64Var(&epoch, "epoch", 0, "`time` of the files in the archives, in seconds since 1970")
	flag.StringVar(&o.out, "out", filepath.Join("bin", "release"), "`directory` that gets the files")
	flag.StringVar(&platforms, "platforms", "", "`platforms`, separated by commas; empty means all of a release")
	flag.Parse()
	o.created = time.Unix(epoch, 0).UTC()
	o.platforms = strings.FieldsFunc(platforms, func(r rune) bool { return r == ',' })
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "release-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	var plugins []plugin
	for _, b := range builds() {
		if len(o.platforms) > 0 && !slices.Contains(o.platforms, b.os+"/"+b.arch) {
			continue
		}
		fmt.Printf("compiling %s for %s/%s\n", b.program, b.os, b.arch)
		path, err := b.compile(o, scratch)
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
		bom, err := b.sbom(o, path)
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
	if err := o.write("release-notes.md", text); err != nil {
		return err
	}
	return checksums(o)
}

func (o options) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(o.out, name), content, 0o644)
}

// compile builds the program, static, and returns its path.
func (b build) compile(o options, into string) (string, error) {
	path := filepath.Join(into, b.name(o))
	// As in the Makefile.
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X main.version="+o.version,
		"-o", path, "./cmd/"+b.program)
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", "GOOS="+b.os, "GOARCH="+b.arch)
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile %s for %s/%s: %w\n%s", b.program, b.os, b.arch, err, strings.TrimSpace(string(output)))
	}
	return path, nil
}

// binary is the name of the program in the archive.
func (b build) binary() string {
	if b.os == "windows" {
		return b.program + ".exe"
	}
	return b.program
}

func (b build) name(o options) string {
	return strings.Join([]string{b.program, o.version, b.os, b.arch}, "_")
}

// archive is the name of the file that pack makes.
func (b build) archive(o options) string {
	if b.os == "windows" {
		return b.name(o) + ".zip"
	}
	return b.name(o) + ".tar.gz"
}

// notes are the section of the changelog for a version, or what is unreleased if it has none, or nil.
func notes(version, changelog string) []byte {
	for _, title := range []string{version, "Unreleased"} {
		section := regexp.MustCompile(`(?ms)^## ` + regexp.QuoteMeta(title) + `(?: [^\n]*)?\n+(.*?)(?:^## |\z)`)
		if found := section.FindStringSubmatch(changelog); found != nil {
			return []byte(strings.TrimSpace(found[1]) + "\n")
		}
	}
	return nil
}

// checksums writes those of all files in the directory, as sha256sum does.
func checksums(o options) error {
	const name = "checksums.txt"
	entries, err := os.ReadDir(o.out) // sorted
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range entries {
		if entry.IsDir() || entry.Name() == name {
			continue
		}
		content, err := os.ReadFile(filepath.Join(o.out, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return o.write(name, []byte(text.String()))
}
