// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// metricPrefixes begin the names of the metrics of each program, which its
// folder defines.
var metricPrefixes = map[string]string{
	"controller":          "clusterset_controller_",
	"plugin/multicluster": "coredns_multicluster_",
}

// documents are the texts of all Markdown files below the folders, by path.
func documents(t *testing.T, folders ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, folder := range folders {
		paths, err := filepath.Glob(filepath.Join(root, folder, "*.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[strings.TrimPrefix(filepath.ToSlash(path), root+"/")] = string(text)
		}
	}
	return texts
}

// definedMetrics are the metrics that the code defines.
func definedMetrics(files []file) map[string]bool {
	defined := map[string]bool{}
	for _, f := range files {
		prefix := metricPrefixes[f.folder()]
		if prefix == "" || f.test() {
			continue
		}
		add := func(name ast.Expr) {
			if sum, ok := name.(*ast.BinaryExpr); ok {
				name = sum.Y // a prefix and the name
			}
			if literal, ok := name.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					defined[prefix+text] = true
				}
			}
		}
		ast.Inspect(f.pkg, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.CallExpr:
				if called, ok := n.Fun.(*ast.Ident); ok && called.Name == "describe" && len(n.Args) > 0 {
					add(n.Args[0])
				}
				if called, ok := n.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "BuildFQName" && len(n.Args) == 3 {
					add(n.Args[2])
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Name" {
					add(n.Value)
				}
			}
			return true
		})
	}
	return defined
}

func TestMetricsInDocumentsExist(t *testing.T) {
	defined := definedMetrics(goFiles(t))
	named := regexp.MustCompile(`\b(?:clusterset_controller|coredns_multicluster)_[a-z_]+`)
	seen := map[string]bool{}
	for path, text := range documents(t, ".", "docs", "docs/design", "controller", "plugin/multicluster") {
		for _, name := range named.FindAllString(text, -1) {
			seen[name] = true
			if !defined[name] {
				t.Errorf("%s: names the metric %s, which the code does not define", path, name)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d metrics found in documents", len(seen))
	}
}

// TestNamesInFailureModesExist holds the tests, events and reasons that the
// table names against the code.
func TestNamesInFailureModesExist(t *testing.T) {
	const path = "docs/failure-modes.md"
	text := documents(t, "docs")[path]
	var tests, code strings.Builder
	for _, f := range goFiles(t) {
		switch {
		case f.folder() == "test/conventions":
		case f.test():
			tests.WriteString(f.text)
		default:
			code.WriteString(f.text)
		}
	}
	count := 0
	for _, quoted := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
		word := quoted[1]
		name, sub, _ := strings.Cut(word, "/")
		switch {
		case regexp.MustCompile(`^Test[A-Z]\w+$`).MatchString(name):
			count++
			if !strings.Contains(tests.String(), "func "+name+"(") {
				t.Errorf("%s: there is no test %s", path, name)
			}
			for part := range strings.SplitSeq(sub, "/") {
				if !strings.Contains(tests.String(), part) {
					t.Errorf("%s: no test has the case %q of %s", path, part, name)
				}
			}
		case regexp.MustCompile(`^[A-Z][a-z]+([A-Z]+[a-z]*)+$`).MatchString(word):
			count++
			if !strings.Contains(code.String(), word) {
				t.Errorf("%s: names %s, which is not in the code", path, word)
			}
		}
	}
	if count < 40 {
		t.Errorf("%s: only %d names found", path, count)
	}
}
