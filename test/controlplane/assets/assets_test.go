// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"bytes"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestExecutable(t *testing.T) {
	for pkg, want := range map[string]string{
		"go.etcd.io/etcd/server/v3":            "server",
		"k8s.io/kubernetes/cmd/kube-apiserver": "kube-apiserver",
		"example.com/v":                        "v",
		"example.com/v1x":                      "v1x",
		"example.com/tool/v12":                 "tool",
	} {
		if got := executable(pkg); got != want {
			t.Errorf("executable(%q) = %q, want %q", pkg, got, want)
		}
	}
}

// writeFiles writes files below a new directory; those with a name in executables may be run.
func writeFiles(t *testing.T, files map[string]string, executables ...string) string {
	t.Helper()
	directory := t.TempDir()
	for name, content := range files {
		path := filepath.Join(directory, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if slices.Contains(executables, name) {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestEnsureTakesWhatIsThere(t *testing.T) {
	files := map[string]string{}
	var names []string
	for _, program := range All() {
		files[string(program)] = "#!/bin/true\n"
		names = append(names, string(program))
	}
	directory := writeFiles(t, files, names...)
	t.Setenv(DirectoryVariable, directory)
	t.Setenv(CacheVariable, filepath.Join(t.TempDir(), "cache"))
	t.Chdir(t.TempDir()) // no source tree is needed

	var progress bytes.Buffer
	paths, err := Ensure(t.Context(), &progress, All()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range All() {
		if want := filepath.Join(directory, string(program)); paths[program] != want {
			t.Errorf("%s is %s, want %s", program, paths[program], want)
		}
	}
	if progress.Len() > 0 {
		t.Errorf("nothing was built, and it says %q", progress.String())
	}
	if _, err := os.Stat(os.Getenv(CacheVariable)); err == nil {
		t.Error("a cache was made without need")
	}
}

func TestEnsureWithoutSource(t *testing.T) {
	directory := writeFiles(t, map[string]string{"etcd": "not a program"}) // without the right to be run
	t.Setenv(DirectoryVariable, directory)
	t.Chdir(t.TempDir())
	_, err := Ensure(t.Context(), io.Discard, Etcd)
	if err == nil || !strings.Contains(err.Error(), DirectoryVariable) || !strings.Contains(err.Error(), nestedModule) {
		t.Errorf("the error does not say what to do: %v", err)
	}
}

func TestKey(t *testing.T) {
	module := map[string]string{"go.mod": "module example.com/programs\n\ngo 1.26\n\nrequire k8s.io/kubernetes v1.2.3\n", "go.sum": "one\n", "controllers/main.go": "package main\n"}
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
		"controllers": func(_ *recipe, files map[string]string) { files["controllers/main.go"] += "// changed\n" },
		"flags":       func(r *recipe, _ map[string]string) { r.flags = append(r.flags, "-v") },
	} {
		if key(change) == original {
			t.Errorf("a change of %s does not change the key", what)
		}
	}
}

func TestKubernetesVersion(t *testing.T) {
	for content, want := range map[string]string{
		"require k8s.io/kubernetes v1.36.3\n":                                         "v1.36.3",
		"require (\n\tk8s.io/api v0.1.0\n\tk8s.io/kubernetes v1.2.3 // indirect\n)\n": "v1.2.3",
		"replace k8s.io/kubernetes => ./x\n":                                          "",
		"":                                                                            "",
	} {
		got, err := kubernetesVersion(writeFiles(t, map[string]string{"go.mod": content}))
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: version %q, %v; want %q", content, got, err, want)
		}
	}
}

// TestNothingIsCompiledTwice compares the modules that a cluster's programs and the product's are made of. Where the version of
// one differs, all packages that import it are compiled for each: raise it in the nested module.
func TestNothingIsCompiledTwice(t *testing.T) {
	recipe, err := findRecipe()
	if err != nil {
		t.Fatal(err)
	}
	var bed []string
	for _, program := range Cluster() {
		bed = append(bed, packages[program])
	}
	versions := modules(t, recipe.source, bed...)
	shared := 0
	for module, version := range modules(t, "../../..", "-tags=slim", "./cmd/coredns", "./cmd/clusterset-controller") {
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

func TestTickerGoesOn(t *testing.T) {
	reader, writer := io.Pipe()
	ticker := startTicker(writer, time.Millisecond)
	ticker.set("downloading something")
	buffer := make([]byte, 1000)
	for range 3 { // each write is one line
		count, err := reader.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		if line := string(buffer[:count]); line != "control plane:    0s  downloading something\n" {
			t.Errorf("line %q", line)
		}
	}
	reader.Close()
	ticker.stop()
}
