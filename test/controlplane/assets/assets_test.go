// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// writeFiles writes files below a new directory.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, content := range files {
		path := filepath.Join(directory, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestKey(t *testing.T) {
	module := map[string]string{
		"go.mod": "module example.com/programs\n\ngo 1.26\n\nrequire k8s.io/kubernetes v1.2.3\n", "go.sum": "one\n",
		"programs/main.go": "package main\n", "programs/controllers.go": "package main\n",
	}
	key := func(change func(*recipe, map[string]string)) string {
		t.Helper()
		files := maps.Clone(module)
		r := recipe{flags: []string{"-trimpath"}}
		change(&r, files)
		r.source = writeFiles(t, files)
		key, err := r.key(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	same := func(*recipe, map[string]string) {}
	original := key(same)
	if again := key(same); again != original {
		t.Error("the key differs between equal modules in different directories")
	}
	for what, change := range map[string]func(*recipe, map[string]string){
		"go.mod":      func(_ *recipe, files map[string]string) { files["go.mod"] += "// changed\n" },
		"go.sum":      func(_ *recipe, files map[string]string) { files["go.sum"] += "two\n" },
		"programs":    func(_ *recipe, files map[string]string) { files["programs/main.go"] += "// changed\n" },
		"controllers": func(_ *recipe, files map[string]string) { files["programs/controllers.go"] += "// changed\n" },
		"flags":       func(r *recipe, _ map[string]string) { r.flags = append(r.flags, "-v") },
	} {
		if key(change) == original {
			t.Errorf("a change of %s does not change the key", what)
		}
	}
}

// TestNothingIsCompiledTwice compares the modules that a cluster's programs and the product's are made of. Where the
// version of one differs, all packages that import it are compiled for each: raise it in the nested module.
func TestNothingIsCompiledTwice(t *testing.T) {
	recipe, err := findRecipe()
	if err != nil {
		t.Fatal(err)
	}
	versions := modules(t, recipe.source, recipe.packagePath)
	shared := 0
	for module, version := range modules(t, "../../..", "-tags=bed", "./cmd/coredns", "./cmd/clusterset-controller") {
		switch versions[module] {
		case "":
		case version:
			shared++
		default:
			t.Errorf("%s is %s in the product and %s in %s", module, version, versions[module], nestedModule)
		}
	}
	if shared < 30 {
		t.Errorf("%d modules are in both, which is too few to be true", shared)
	}
}

// modules are the versions of those that packages are made of.
func modules(t *testing.T, directory string, args ...string) map[string]string {
	t.Helper()
	format := "{{with .Module}}{{if not .Main}}{{.Path}} {{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}{{end}}"
	list := exec.Command("go", append([]string{"list", "-deps", "-f", format}, args...)...)
	list.Dir, list.Env = directory, append(os.Environ(), buildSettings...)
	output, err := list.Output()
	if err != nil {
		t.Fatal(withOutput(err))
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(output)) {
		if module, version, found := strings.Cut(strings.TrimSpace(line), " "); found {
			versions[module] = version
		}
	}
	return versions
}
