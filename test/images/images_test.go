// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"crypto/x509"
	"debug/elf"
	"encoding/hex"
	"encoding/pem"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// root is that of the repository.
const root = "../.."

// buildImages runs the program behind `make images`.
func buildImages(t testing.TB, args ...string) (into string) {
	t.Helper()
	into = t.TempDir()
	command := exec.CommandContext(t.Context(), "go",
		append([]string{"run", ".", "-out", into, "-version", "v9.9.9", "-revision", "abc", "-epoch", "1700000000"},
			args...)...)
	command.Dir = filepath.Join(root, "test", "tools", "images")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	return into
}

// TestImages builds the images, and opens what was written.
func TestImages(t *testing.T) {
	if err := process.TieToParent(); err != nil {
		t.Fatal(err)
	}
	into := buildImages(t)
	for _, program := range []struct {
		name, file   string
		ports        []string
		capabilities string
	}{
		{"clusterset-controller", "clusterset-controller", []string{"8080/tcp", "8081/tcp"}, ""},
		{"coredns", "coredns", []string{"53/tcp", "53/udp"}, bindService},
		{"coredns-slim", "coredns", []string{"53/tcp", "53/udp"}, bindService},
	} {
		t.Run(program.name, func(t *testing.T) {
			l := Layout(filepath.Join(into, program.name))
			top := l.Index(t)
			if len(top.Manifests) != 3 ||
				top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v9.9.9" {
				t.Fatalf("the layout has %v, want an index called v9.9.9 and two SBOMs", top.Manifests)
			}
			sboms := map[string]Descriptor{}
			for _, d := range top.Manifests[1:] {
				if m := l.Manifest(t, d); m.Subject != nil &&
					m.Config.MediaType == "application/vnd.cyclonedx+json" {
					sboms[m.Subject.Digest] = m.Layers[0]
				}
			}
			var platforms []string
			for _, d := range l.Manifest(t, top.Manifests[0]).Manifests {
				platforms = append(platforms, d.Platform.OS+"/"+d.Platform.Architecture)
				m := l.Manifest(t, d)
				config := l.Configuration(t, m)
				if config.OS != d.Platform.OS || config.Architecture != d.Platform.Architecture {
					t.Errorf("%s/%s in the configuration, %v in the index", config.OS, config.Architecture, d.Platform)
				}
				if c := config.Config; c.User != "65532:65532" ||
					!slices.Equal(c.Entrypoint, []string{"/" + program.file}) ||
					!slices.Equal(slices.Sorted(maps.Keys(c.ExposedPorts)), program.ports) ||
					c.Labels["org.opencontainers.image.version"] != "v9.9.9" ||
					c.Labels["org.opencontainers.image.revision"] != "abc" {
					t.Errorf("configuration %+v", c)
				}
				checkFiles(t, l.Files(t, m), program.file, config.Architecture, program.capabilities)
				sbom, ok := sboms[d.Digest]
				if !ok {
					t.Fatalf("no SBOM refers to %s", d.Digest)
				}
				checkSBOM(t, l.Blob(t, sbom), program.name)
			}
			if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
				t.Errorf("platforms %v", platforms)
			}
		})
	}

	t.Run("the same source gives the same bytes", func(t *testing.T) {
		const program = "clusterset-controller"
		again := buildImages(t, "-only", program, "-platforms", "linux/"+runtime.GOARCH)
		first, second := digests(t, filepath.Join(into, program)), digests(t, filepath.Join(again, program))
		if len(second) != 2 || first[runtime.GOARCH] != second[runtime.GOARCH] ||
			first["SBOM of "+runtime.GOARCH] != second["SBOM of "+runtime.GOARCH] {
			t.Errorf("the second build has other digests: %v, before %v", second, first)
		}
	})
}

// digests are those of the image for each architecture, and of its SBOM.
func digests(t testing.TB, path string) map[string]string {
	t.Helper()
	l, all := Layout(path), map[string]string{}
	top := l.Index(t)
	for _, image := range l.Manifest(t, top.Manifests[0]).Manifests {
		all[image.Platform.Architecture] = image.Digest
		for _, d := range top.Manifests[1:] {
			if m := l.Manifest(t, d); m.Subject != nil && m.Subject.Digest == image.Digest {
				all["SBOM of "+image.Platform.Architecture] = d.Digest
			}
		}
	}
	return all
}

// bindService is cap_net_bind_service=ep, as getcap says it.
const bindService = "0100000200040000000000000000000000000000"

// checkFiles looks at what the image holds: the program, and little else.
func checkFiles(t *testing.T, all map[string]File, program, architecture, capabilities string) {
	t.Helper()
	want := []string{
		program, "etc/", "etc/group", "etc/passwd", "etc/ssl/", "etc/ssl/certs/", "etc/ssl/certs/ca-certificates.crt",
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Fatalf("files %v, want %v", got, want)
	}
	for name, file := range all {
		if file.Uid != 0 || file.Gid != 0 || file.Mode&0o022 != 0 || file.ModTime.Unix() != 1700000000 {
			t.Errorf("%s: %+v", name, file.Header)
		}
	}
	roots := 0
	for rest := all["etc/ssl/certs/ca-certificates.crt"].Data; ; roots++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Error(err)
		}
	}
	if roots < 50 {
		t.Errorf("%d CA certificates", roots)
	}
	binary := all[program]
	if got := hex.EncodeToString([]byte(binary.PAXRecords["SCHILY.xattr.security.capability"])); got != capabilities ||
		binary.Mode != 0o755 {
		t.Errorf("%s has capabilities %q and mode %o", program, got, binary.Mode)
	}
	parsed, err := elf.NewFile(bytes.NewReader(binary.Data))
	if err != nil {
		t.Fatal(err)
	}
	if machine := map[string]elf.Machine{
		"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64,
	}[architecture]; parsed.Machine != machine {
		t.Errorf("%s is for %s, the image for %s", program, parsed.Machine, architecture)
	}
	if libraries, err := parsed.ImportedLibraries(); len(libraries) > 0 ||
		slices.ContainsFunc(parsed.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Errorf("%s is not static: %v, %v", program, libraries, err)
	}
	if architecture == runtime.GOARCH {
		path := filepath.Join(t.TempDir(), program)
		if err := os.WriteFile(path, binary.Data, 0o700); err != nil {
			t.Fatal(err)
		}
		if output, err := exec.CommandContext(t.Context(), path, "--version").CombinedOutput(); err != nil ||
			!bytes.Contains(output, []byte("v9.9.9")) {
			t.Errorf("%s --version says %q: %v", program, output, err)
		}
		if program == "coredns" {
			checkCorefile(t, path)
		}
	}
}

// checkCorefile has a CoreDNS read the Corefile of the chart. It knows all directives if it misses only the credentials
// of a pod.
func checkCorefile(t *testing.T, program string) {
	t.Helper()
	var values struct{ CoreDNS struct{ Corefile string } }
	if err := yaml.Unmarshal(read(t, root+"/deploy/chart/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "Corefile")
	if err := os.WriteFile(path, []byte("(multicluster-options) {\n}\n"+values.CoreDNS.Corefile), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), program, "-conf", path).CombinedOutput()
	if err == nil || !bytes.Contains(output, []byte("this runs in no pod")) {
		t.Errorf("with the chart's Corefile, CoreDNS says %q: %v", output, err)
	}
}

// checkSBOM looks for what every one of the programs is made of.
func checkSBOM(t *testing.T, text []byte, program string) {
	t.Helper()
	sbom := decode[struct {
		BomFormat string
		Metadata  struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version, Purl string }
	}](t, text)
	if c := sbom.Metadata.Component; sbom.BomFormat != "CycloneDX" || c.Name != program || c.Version != "v9.9.9" {
		t.Errorf("the SBOM is a %s of %v", sbom.BomFormat, c)
	}
	if clouds := slices.IndexFunc(sbom.Components, func(c struct{ Name, Version, Purl string }) bool {
		return strings.Contains(c.Name, "aws") || strings.Contains(c.Name, "Azure") ||
			strings.HasPrefix(c.Name, "cloud.google.com/")
	}); (clouds < 0) == (program == "coredns") {
		t.Errorf("%d components, the first SDK of a cloud at %d", len(sbom.Components), clouds)
	}
	for _, module := range []string{
		"stdlib", "k8s.io/client-go", "sigs.k8s.io/mcs-api", "golang.org/x/crypto/x509roots/fallback",
	} {
		found := false
		for _, c := range sbom.Components {
			if found = found || c.Name == module; c.Version == "" || c.Purl != "pkg:golang/"+c.Name+"@"+c.Version {
				t.Errorf("component %v", c)
			}
		}
		if !found {
			t.Errorf("%s is not in the SBOM", module)
		}
	}
}
