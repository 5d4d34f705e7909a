// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

var forTests = options{version: "1.2.3", created: time.Unix(1700000000, 0).UTC()}

// TestArchives packs the same files twice, and reads the archives.
func TestArchives(t *testing.T) {
	for _, b := range []build{{"kubectl-clusterset", "darwin", "arm64"}, {"kubectl-clusterset", "windows", "amd64"}} {
		files := fstest.MapFS{
			b.binary(): {Data: []byte("program"), Mode: 0o755, ModTime: forTests.created},
			"LICENSE":  {Data: []byte("license"), Mode: 0o644, ModTime: forTests.created},
		}
		packed, err := b.pack(files)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := b.pack(files); !bytes.Equal(packed, again) {
			t.Errorf("%s has other bytes the second time", b.archive(forTests))
		}
		want := map[string]string{
			"darwin":  "kubectl-clusterset_1.2.3_darwin_arm64.tar.gz: LICENSE 644 license, kubectl-clusterset 755 program",
			"windows": "kubectl-clusterset_1.2.3_windows_amd64.zip: LICENSE 644 license, kubectl-clusterset.exe 755 program",
		}[b.os]
		if got := b.archive(forTests) + ": " + strings.Join(unpack(t, b, packed), ", "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// unpack returns the name, mode and content of each file.
func unpack(t *testing.T, b build, packed []byte) (files []string) {
	t.Helper()
	add := func(name string, mode int64, modified time.Time, from io.Reader) {
		content, err := io.ReadAll(from)
		if err != nil || !modified.Equal(forTests.created) {
			t.Errorf("%s of %v: %v", name, modified, err)
		}
		files = append(files, fmt.Sprintf("%s %o %s", name, mode, content))
	}
	if b.os == "windows" {
		archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.File {
			from, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(f.Name, int64(f.Mode().Perm()), f.Modified, from)
		}
		return files
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if err != nil {
			return files
		}
		add(header.Name, header.Mode, header.ModTime, archive)
	}
}

func TestNotes(t *testing.T) {
	const changelog = "# Changelog\n\n## Unreleased\n\nnew\n\n## 1.2.3-rc.1\n\nearly\n\n## 1.2.3 (2027-01-01)\n\nthis\n\n### part\n\nmore\n\n" +
		"## 1.2.2\n\nold\n"
	for version, want := range map[string]string{
		"1.2.3": "this\n\n### part\n\nmore\n", "1.2.2": "old\n", "1.2.3-rc.1": "early\n", "1.3.0": "new\n",
	} {
		if got := string(notes(version, changelog)); got != want {
			t.Errorf("notes of %s: %q, want %q", version, got, want)
		}
	}
	if got := notes("1.2.3", "# Changelog\n\n## 1.2.3-rc.1\n\nearly\n"); got != nil {
		t.Errorf("notes of a version without a section: %q", got)
	}
}

func TestKrew(t *testing.T) {
	var plugins []plugin
	for _, b := range builds() {
		if b.program == "kubectl-clusterset" {
			plugins = append(plugins, plugin{build: b, sum: [sha256.Size]byte{0xab}})
		}
	}
	text := string(krew(forTests, plugins))
	want := `    - selector:
        matchLabels: {os: windows, arch: arm64}
      uri: ` + repository + `/releases/download/v1.2.3/kubectl-clusterset_1.2.3_windows_arm64.zip
      sha256: ab00000000000000000000000000000000000000000000000000000000000000
      bin: kubectl-clusterset.exe
`
	if strings.Count(text, "selector:") != 6 || !strings.Contains(text, want) {
		t.Errorf("%s\nlacks\n%s", text, want)
	}
}

// TestSBOM reads the modules of the test binary.
func TestSBOM(t *testing.T) {
	path, err := os.Executable()
	must(t, err)
	text, err := forTests.bom(path, build{program: "coredns"}.component(forTests))
	must(t, err)
	for _, want := range []string{
		`"timestamp": "2023-11-14T22:13:20Z"`, `"name": "github.com/clusterset-dns/clusterset-dns/cmd/coredns"`, `"version": "v1.2.3"`,
		`"purl": "pkg:golang/github.com/clusterset-dns/clusterset-dns/cmd/coredns@v1.2.3"`, `"name": "stdlib"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it lacks %s: %s", want, text)
		}
	}
}
