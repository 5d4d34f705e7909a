// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// required returns the versions of the modules that a go.mod requires.
func required(t *testing.T, path string) map[string]string {
	versions := map[string]string{}
	for line := range strings.Lines(read(t, path)) {
		if fields := strings.Fields(strings.TrimPrefix(line, "require ")); len(fields) > 1 && strings.HasPrefix(fields[1], "v") {
			versions[fields[0]] = fields[1]
		}
	}
	return versions
}

// differences returns the modules that both require in different versions, and the number of shared modules.
func differences(a, b map[string]string) (different []string, shared int) {
	for name, version := range a {
		if other, both := b[name]; both && other != version {
			different = append(different, name+" "+version+" and "+other)
		} else if both {
			shared++
		}
	}
	slices.Sort(different)
	return different, shared
}

// TestModulesAgree: tests use the module versions that the product requires. A workspace would silently use the newer
// version of both modules.
func TestModulesAgree(t *testing.T) {
	different, shared := differences(required(t, root+"/go.mod"), required(t, root+"/test/go.mod"))
	for _, each := range different {
		t.Errorf("go.mod and test/go.mod differ: %s", each)
	}
	if shared < 50 {
		t.Errorf("go.mod and test/go.mod share %d modules, want at least 50", shared)
	}
}

// TestTheModuleAddsLittleToCoreDNS: a CoreDNS that compiles the plugin in keeps CoreDNS's module versions. The
// programs, not only tests or tools, need the modules that our go.mod requires in addition.
func TestTheModuleAddsLittleToCoreDNS(t *testing.T) {
	golist := func(system string, args ...string) []string {
		command := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
		command.Dir, command.Env = root, append(os.Environ(), "GOWORK=off", "GOOS="+system)
		output, err := process.Output(command)
		must(t, err)
		return strings.Fields(output)
	}
	const coredns = "github.com/coredns/coredns"
	folder := golist("linux", "-m", "-f", "{{.Dir}}", coredns)
	ours, theirs := required(t, root+"/go.mod"), required(t, filepath.Join(folder[0], "go.mod"))
	different, shared := differences(ours, theirs)
	for _, each := range different {
		t.Errorf("go.mod and that of CoreDNS differ: %s", each)
	}
	if shared < 50 {
		t.Errorf("go.mod and that of CoreDNS share %d modules, want at least 50", shared)
	}
	var used []string
	for _, system := range []string{"linux", "windows"} {
		used = append(used, golist(system, "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./...")...)
	}
	for name := range ours {
		if _, both := theirs[name]; !both && !slices.Contains(used, name) {
			t.Errorf("go.mod requires %s, which neither CoreDNS nor our programs use", name)
		}
	}
}

// TestImagesOfTheChart: the images that Artifact Hub lists and scans have the version of the chart.
func TestImagesOfTheChart(t *testing.T) {
	text := read(t, root+"/deploy/chart/Chart.yaml")
	version := matches(regexp.MustCompile(`(?m)^appVersion: (\S+)$`), text)
	images := matches(regexp.MustCompile(`(?m)^ +image: ghcr\.io/clusterset-dns/\S+:(\S+)$`), text)
	if len(version) != 1 || !slices.Equal(images, slices.Repeat(version, 2)) {
		t.Errorf("the images are %q, want 2 of version %s", images, version)
	}
}
