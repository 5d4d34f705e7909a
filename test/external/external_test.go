// SPDX-License-Identifier: Apache-2.0

// Package external compiles the plugin into a CoreDNS from CoreDNS's source with plugin.cfg, as other distributions do.
package external

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

const (
	root    = "../.."
	module  = "github.com/clusterset-dns/clusterset-dns"
	coredns = "github.com/coredns/coredns"
)

var must = controlplanetest.Must

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// run runs a shell command in a folder, and returns its standard output.
func run(t *testing.T, folder, line string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", "-ec", line)
	command.Dir = folder
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", "GOGC=")
	output, err := process.Output(command)
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, output)
	}
	return strings.TrimSpace(output)
}

// TestThePluginInAnotherCoreDNS builds a CoreDNS from source as documented.
func TestThePluginInAnotherCoreDNS(t *testing.T) {
	source, version, _ := strings.Cut(run(t, root, "go list -m -f '{{.Dir}} {{.Version}}' "+coredns), " ")
	// The steps before stage download the source; the steps after it need a container.
	clone, stage, _ := strings.Cut(controlplanetest.Documented(t, "operate/install.md", "RUN setcap "), "WORKDIR /coredns\n")
	stage, _, _ = strings.Cut(stage, "RUN setcap ")
	if !strings.Contains(clone, " --branch "+version+" ") {
		t.Errorf("the page names another version than %s:\n%s", version, clone)
	}
	checkout, err := filepath.Abs(root)
	must(t, err)
	folder := t.TempDir()
	must(t, os.CopyFS(folder, os.DirFS(source)))
	before := requirements(t, folder)
	run(t, folder, "go mod edit -replace "+module+"="+checkout)
	for _, match := range regexp.MustCompile(`(?m)^RUN (.*)$`).FindAllStringSubmatch(stage, -1) {
		run(t, folder, match[1])
	}
	if after := requirements(t, folder); after != before {
		t.Errorf("go.mod was\n%s\nand is\n%s", before, after)
	}
	used := run(t, folder, "go version -m coredns")
	if strings.Contains(used, "azure-sdk") || !strings.Contains(used, "\t"+module) {
		t.Errorf("modules of the program:\n%s", used)
	}
	order, err := os.ReadFile(filepath.Join(folder, "core", "dnsserver", "zdirectives.go"))
	must(t, err)
	if !strings.Contains(string(order), "\"multicluster\",\n\t\"kubernetes\",\n") {
		t.Errorf("multicluster is not before kubernetes in\n%s", order)
	}
	if plugins := run(t, folder, "./coredns -plugins"); !strings.Contains(plugins, "\nmulticluster\n") {
		t.Errorf("the program has the plugins\n%s", plugins)
	}
}

// requirements returns a go.mod without the lines that name our module.
func requirements(t *testing.T, folder string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	must(t, err)
	others := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.Contains(line, module) })
	return strings.TrimSpace(strings.Join(others, "\n"))
}
