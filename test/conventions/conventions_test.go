// SPDX-License-Identifier: Apache-2.0

// Package conventions checks the project's own rules.
package conventions

import (
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

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

const (
	root   = "../.."
	module = "github.com/clusterset-dns/clusterset-dns/"
)

// pure are packages of functions that only convert values to values.
var pure = []string{
	"controller/export", "controller/limits", "controller/liveness",
	"controller/merge", "controller/placement", "controller/scope",
	"controller/state",
	"plugin/multicluster/record",
}

// impure are imports, with all packages below them, that a pure package must not have.
var impure = []string{
	"k8s.io/client-go", "sigs.k8s.io/mcs-api/pkg/client", "k8s.io/klog", "github.com/prometheus",
	"github.com/coredns/coredns/plugin/pkg/log",
	"context", "log", "net", "os",
}

type file struct {
	path    string // relative to the root, with slashes
	text    string
	imports []string
	pkg     string
}

func (f file) test() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f file) folder() string { return filepath.ToSlash(filepath.Dir(f.path)) }

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
		parsed, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		f := file{path: path, text: text, pkg: parsed.Name.Name}
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

// An importRule restricts the imports of folders and everything below them: they must not import deny or packages below
// it, nor, unless allow is nil, any of the project's packages that are not in allow or below it.
type importRule struct {
	folders, deny, allow []string
	tests                bool // whether the rule also applies to tests
}

func under(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") })
}

var importRules = []importRule{
	{folders: pure, deny: impure, allow: pure},
	// The core of the controller gets the decisions of layers as values, or through its own interface.
	{folders: []string{"controller/merge"}, allow: []string{"controller/export"}},
	{folders: []string{"plugin"}, deny: []string{module + "controller"}, tests: true},
	{folders: []string{"controller"}, deny: []string{module + "plugin", "github.com/coredns"}, tests: true},
	// kubectl clusterset prints the controller's state, and imports only the types of that state.
	{folders: []string{"cmd/kubectl-clusterset"}, deny: []string{module + "plugin", module + "controller"}},
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range goFiles(t) {
		seen[f.folder()] = true
		for _, rule := range importRules {
			if !under(f.folder(), rule.folders) || f.test() && !rule.tests {
				continue
			}
			for _, imported := range f.imports {
				own, ours := strings.CutPrefix(imported, module)
				switch {
				case imported == "net/netip", own == "controller/state" && strings.HasPrefix(f.path, "cmd/"):
				case under(imported, rule.deny), ours && rule.allow != nil && !under(own, rule.allow):
					t.Errorf("%s: imports %s", f.path, imported)
				}
			}
		}
		if f.test() {
			continue
		}
		// Only the wiring imports the prober and the inventory: the core works without them.
		for _, layer := range []string{"controller/probe", "controller/clusterprofile"} {
			if strings.HasPrefix(f.folder(), "controller/") && slices.Contains(f.imports, module+layer) {
				t.Errorf("%s: imports %s, which is a layer", f.path, layer)
			}
		}
		if cut := eventText.FindString(f.text); cut != "" && strings.HasPrefix(f.path, "cmd/kubectl-clusterset/") {
			t.Errorf("%s: derives from the text of an Event what the controller says: %s", f.path, cut)
		}
	}
	for _, rule := range importRules {
		for _, folder := range rule.folders {
			if !seen[folder] && folder != "controller" && folder != "plugin" {
				t.Errorf("%s: no such package", folder)
			}
		}
	}
}

var eventText = regexp.MustCompile(`strings\.\w+\([^()]*[eE]vent\.Message`)

// write matches uses of client methods that write objects. Methods of caches have a single argument, which it captures.
var write = regexp.MustCompile(`\.(?:(?:Create|Update|Delete|Put)\b(\([^,\n]*\))?|(?:UpdateStatus|Patch|Apply|ApplyStatus|DeleteCollection|Post)\b)`)

// noWrite matches lines that write nothing or only Leases, which other packages may write.
var noWrite = regexp.MustCompile(`^\s*//|\bLeases\(|\bslices\.Delete`)

// writesOf returns the lines of a file that may write to a cluster.
func writesOf(text string) (found []string) {
	for line := range strings.Lines(text) {
		for _, match := range write.FindAllStringSubmatch(line, -1) {
			if match[1] == "" && !noWrite.MatchString(line) {
				found = append(found, strings.TrimSpace(line))
			}
		}
	}
	return found
}

func TestOnlyApplyWritesToACluster(t *testing.T) {
	seen := 0
	for _, f := range goFiles(t) {
		if f.folder() == "controller/apply" && !f.test() {
			seen += len(writesOf(f.text))
		}
		// Leases are written all the time: the heartbeat, the members' Leases, and the leader Lease, which
		// controller/leader.go writes through client-go's lock. Tokens are not imported or exported.
		if f.test() || !strings.HasPrefix(f.path, "controller/") || f.folder() == "controller/apply" ||
			f.path == "controller/leader.go" {
			continue
		}
		for _, line := range writesOf(f.text) {
			t.Errorf("%s: writes to a cluster outside of controller/apply: %s", f.path, line)
		}
	}
	if seen < 5 {
		t.Errorf("only %d writes are found in controller/apply", seen)
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
