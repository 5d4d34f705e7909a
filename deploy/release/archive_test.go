// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

var forTests = options{version: "1.2.3", created: time.Unix(1700000000, 0).UTC()}

// TestArchives packs a file for Windows, and reads the archive. test/quickstart unpacks one for Linux, and TestKrew has names.
func TestArchives(t *testing.T) {
	packed, err := build{"kubectl-clusterset", "windows", "amd64"}.pack(fstest.MapFS{"LICENSE": {Data: []byte("license"), Mode: 0o644}})
	must(t, err)
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	must(t, err)
	if content, err := fs.ReadFile(archive, "LICENSE"); err != nil || string(content) != "license" {
		t.Errorf("it has %q, %v", content, err)
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
