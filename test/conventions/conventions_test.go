// SPDX-License-Identifier: Apache-2.0

// Package conventions checks the project's own rules.
package conventions

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

const root = "../.."

type file struct {
	path string // relative to the root, with slashes
	text string
	pkg  string
}

func (f file) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// goFiles parses all Go files of the repository, once. Tests must not change the result.
func goFiles(t *testing.T) []file {
	files, err := parsedFiles()
	must(t, err)
	if len(files) < 20 {
		t.Fatalf("only %d Go files found below %s", len(files), root)
	}
	return files
}

var parsedFiles = sync.OnceValues(func() (files []file, err error) {
	err = walk(".go", func(path, text string) error {
		parsed, err := parser.ParseFile(token.NewFileSet(), path, text, parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		files = append(files, file{path: path, text: text, pkg: parsed.Name.Name})
		return nil
	})
	return files, err
})

// walk calls each with the path, relative to the root, and the text of every file with the extension.
func walk(extension string, each func(path, text string) error) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin" || entry.Name() == "testdata"):
			return filepath.SkipDir
		case filepath.Ext(path) != extension:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return each(strings.TrimPrefix(filepath.ToSlash(path), root+"/"), string(text))
	})
}

var must = controlplanetest.Must

// read returns the text of a file of the repository.
func read(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func TestEveryFileNamesTheLicence(t *testing.T) {
	for _, f := range goFiles(t) {
		if !strings.HasPrefix(f.text, "// SPDX-License-Identifier: Apache-2.0\n") {
			t.Errorf("%s: does not begin with // SPDX-License-Identifier: Apache-2.0", f.path)
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
