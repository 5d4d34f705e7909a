// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

// TestSoak is the soak of two minutes: one storm and one calm.
func TestSoak(t *testing.T) {
	if err := process.TieToParent(); err != nil {
		t.Fatal(err)
	}
	bin, err := programs.Build(t.Context(), "cmd/coredns", "cmd/clusterset-controller", "test/soak")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(filepath.Join(bin, "soak"), "-for", "2m", "-query-every", "25ms", "-bin", bin, "-logs", t.ArtifactDir())
	command.Dir = "../.."
	// A pipe of its own: Wait would close the one that StdoutPipe makes before all of it is read.
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	command.Stdout, command.Stderr = writer, writer
	if err := process.StartTied(command); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	// What was judged is enough to say something.
	for figure, least := range map[string]int{
		`(\d+)  query: A`: 5000, `(\d+) of them for services that were healthy`: 1000,
		`(\d+) of them withdrawn just before`: 10, `(\d+)  operation: readiness`: 20, `(\d+)  operation: withdraw`: 2,
	} {
		found := regexp.MustCompile(figure).FindSubmatch(text)
		if found == nil {
			t.Errorf("no figure %s", figure)
			continue
		}
		if count, err := strconv.Atoi(string(found[1])); err != nil || count < least {
			t.Errorf("%s: want at least %d", found[0], least)
		}
	}
}
