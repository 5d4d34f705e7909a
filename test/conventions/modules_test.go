// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"regexp"
	"slices"
	"strings"
	"testing"
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

// TestModulesAgree: tests use the module versions that the product requires. A workspace would silently use the newer
// version of both modules. TestThePluginInAnotherCoreDNS compares the product's versions with CoreDNS's.
func TestModulesAgree(t *testing.T) {
	shared, tests := 0, required(t, root+"/test/go.mod")
	for name, version := range required(t, root+"/go.mod") {
		if other := tests[name]; other == version {
			shared++
		} else if other != "" {
			t.Errorf("go.mod requires %s %s, and test/go.mod %s", name, version, other)
		}
	}
	if shared < 50 {
		t.Errorf("go.mod and test/go.mod share %d modules, want at least 50", shared)
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
