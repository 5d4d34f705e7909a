// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestConformanceReport runs conformance.sh with programs in place of git and the suite: the report is where the SIG's
// site expects it, with the four fields that it requires, and a failed run still leaves its report.
func TestConformanceReport(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(root, "deploy", "kind", "conformance.sh"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range map[string]string{
		"git": `case $1 in clone) mkdir -p "$4/conformance" ;; -C) echo "$5" >"$2/checked-out" ;; esac`,
		"go": `case $1 in list) echo v0.5.2; exit ;; esac
cd "$2" && printf '%s\n' "$@" >report.yaml && touch report.html && [ ! -e fails ]`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh -e\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run := func(version string) (report string, err error) {
		command := exec.CommandContext(t.Context(), "sh", script, "kind-east,kind-west", "reports", version)
		command.Dir = folder
		command.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
		output, err := command.CombinedOutput()
		t.Logf("%s", output)
		text, readErr := os.ReadFile(filepath.Join(folder, "reports", "v0.5.2", "clusterset-dns", version+".yaml"))
		if readErr != nil {
			t.Fatal(readErr)
		}
		return string(text), err
	}
	report, err := run("0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{
		"--contexts=kind-east,kind-west", "--organization=clusterset-dns", "--project=clusterset-dns", "--version=0.1.0",
		"--url=https://github.com/clusterset-dns/clusterset-dns",
	} {
		if !strings.Contains(report, flag+"\n") {
			t.Errorf("the suite was not run with %s, but with %s", flag, report)
		}
	}
	suite := filepath.Join(folder, "bin", "conformance", "mcs-api")
	if release, err := os.ReadFile(filepath.Join(suite, "checked-out")); string(release) != "v0.5.2\n" {
		t.Errorf("checked out %q: %v", release, err)
	}
	if err := os.WriteFile(filepath.Join(suite, "conformance", "fails"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run("0.2.0"); err == nil {
		t.Error("a failed suite is not an error")
	}
}
