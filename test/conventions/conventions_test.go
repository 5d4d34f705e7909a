// SPDX-License-Identifier: Apache-2.0

// Package conventions holds the project's own rules as tests.
package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/clusterset-dns/clusterset-dns/"
)

// pure are the packages that take values and return values.
var pure = []string{
	"controller/export", "controller/liveness", "controller/locality", "controller/merge",
	"plugin/multicluster/index", "plugin/multicluster/name",
}

// impure are imports that a pure package cannot have, with all below them.
var impure = []string{
	"k8s.io/client-go", "sigs.k8s.io/mcs-api/pkg/client", "k8s.io/klog", "github.com/prometheus",
	"context", "log", "net", "os",
}

type file struct {
	path    string // from the root, with slashes
	text    string
	imports []string
	pkg     *ast.File
}

func (f file) test() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f file) folder() string { return filepath.ToSlash(filepath.Dir(f.path)) }

// goFiles are all Go files of the repository, which no test may change: they are parsed once.
func goFiles(t *testing.T) []file {
	t.Helper()
	files, err := parsedFiles()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("only %d Go files found below %s", len(files), root)
	}
	return files
}

var parsedFiles = sync.OnceValues(func() (files []file, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == ".git" || name == "testdata" || name == "bin" {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f := file{path: filepath.ToSlash(relative), text: string(text), pkg: parsed}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imported)
		}
		files = append(files, f)
		return nil
	})
	return files, err
})

func TestEveryPackageHasOnePackageComment(t *testing.T) {
	comments := map[string][]string{}
	for _, f := range goFiles(t) {
		if f.test() && f.folder() != "test/conventions" {
			continue
		}
		if _, seen := comments[f.folder()]; !seen {
			comments[f.folder()] = nil
		}
		if f.pkg.Doc != nil && strings.TrimSpace(f.pkg.Doc.Text()) != "" {
			comments[f.folder()] = append(comments[f.folder()], f.path)
		}
	}
	for folder, files := range comments {
		if len(files) != 1 {
			t.Errorf("%s: %d files have a package comment, one must: %v", folder, len(files), files)
		}
	}
}

func TestEveryFileNamesTheLicence(t *testing.T) {
	for _, f := range goFiles(t) {
		if !strings.HasPrefix(f.text, "// SPDX-License-Identifier: Apache-2.0\n") {
			t.Errorf("%s: does not begin with // SPDX-License-Identifier: Apache-2.0", f.path)
		}
	}
}

func TestPurePackagesImportNothingImpure(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test() || !slices.Contains(pure, f.folder()) {
			continue
		}
		seen[f.folder()] = true
		for _, imported := range f.imports {
			for _, denied := range impure {
				if imported == denied || strings.HasPrefix(imported, denied+"/") && imported != "net/netip" {
					t.Errorf("%s: imports %s", f.path, imported)
				}
			}
			if own, ok := strings.CutPrefix(imported, module); ok && !slices.Contains(pure, own) {
				t.Errorf("%s: imports %s, which is not pure", f.path, own)
			}
		}
	}
	for _, folder := range pure {
		if !seen[folder] {
			t.Errorf("%s: no such package", folder)
		}
	}
}

func TestPluginAndControllerNeverImportEachOther(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, imported := range f.imports {
			own, _ := strings.CutPrefix(imported, module)
			if strings.HasPrefix(f.path, "plugin/") && strings.HasPrefix(own, "controller") ||
				strings.HasPrefix(f.path, "controller/") && strings.HasPrefix(own, "plugin") {
				t.Errorf("%s: imports %s", f.path, own)
			}
		}
	}
}

func TestOnlyApplyWritesToACluster(t *testing.T) {
	write := regexp.MustCompile(`\.(Create|Update|UpdateStatus|Patch|Apply|ApplyStatus|Delete|DeleteCollection)\(ctx, `)
	for _, f := range goFiles(t) {
		// Leases are written in the steady state: the heartbeat, the members', and the leader's, which leader.go writes
		// by way of client-go's lock.
		if f.test() || !strings.HasPrefix(f.path, "controller/") || f.folder() == "controller/apply" || f.path == "controller/leader.go" {
			continue
		}
		for number, line := range strings.Split(f.text, "\n") {
			if write.MatchString(line) && !strings.Contains(line, "Leases(") {
				t.Errorf("%s:%d: writes to a cluster outside of controller/apply: %s", f.path, number+1, strings.TrimSpace(line))
			}
		}
	}
}

func TestFilesAreReadInOneSitting(t *testing.T) {
	const most = 400
	for _, f := range goFiles(t) {
		if lines := strings.Count(f.text, "\n"); !f.test() && lines > most {
			t.Errorf("%s: %d lines, at most %d", f.path, lines, most)
		}
	}
}
