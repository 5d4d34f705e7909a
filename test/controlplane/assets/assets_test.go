// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

// TestNothingIsCompiledTwice compares the modules that a cluster's programs and the product's are made of. Where the
// version of one differs, all packages that import it are compiled for each: raise it in the nested module.
func TestNothingIsCompiledTwice(t *testing.T) {
	versions := modules(t, binaries, environment, "./"+executable)
	shared := 0
	for module, version := range modules(t, ".", nil, "-tags=bed", "./cmd/coredns", "./cmd/clusterset-controller") {
		switch versions[module] {
		case "":
		case version:
			shared++
		default:
			t.Errorf("%s is %s in the product and %s in %s", module, version, versions[module], binaries)
		}
	}
	if shared < 30 {
		t.Errorf("%d modules are in both, which is too few to be true", shared)
	}
}

// modules are the versions of those that packages are made of.
func modules(t *testing.T, module string, environment []string, args ...string) map[string]string {
	t.Helper()
	format := "{{with .Module}}{{if not .Main}}{{.Path}} {{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}{{end}}"
	output, err := programs.Go(t.Context(), module, environment, append([]string{"list", "-deps", "-f", format}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for line := range strings.Lines(output) {
		if module, version, found := strings.Cut(strings.TrimSpace(line), " "); found {
			versions[module] = version
		}
	}
	return versions
}
