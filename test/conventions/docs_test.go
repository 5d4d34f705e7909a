// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// TestNamesInFailureModesExist holds the tests, their cases, the Events and the reasons that the document names against the code.
func TestNamesInFailureModesExist(t *testing.T) {
	const path = "docs/failure-modes.md"
	files := goFiles(t)
	tests, reasons := testCases(files), namesInCode(files)
	count := 0
	for _, quoted := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(documents(t, "docs")[path], -1) {
		word := quoted[1]
		name, sub, _ := strings.Cut(word, "/")
		switch {
		case regexp.MustCompile(`^Test[A-Z]\w+$`).MatchString(name):
			count++
			if len(tests[name]) == 0 {
				t.Errorf("%s: there is no test %s", path, name)
			} else if !slices.ContainsFunc(tests[name], func(cases map[string]bool) bool { return hasCase(cases, sub) }) {
				t.Errorf("%s: test %s has no case %q", path, name, sub)
			}
		case regexp.MustCompile(`^[A-Z][a-z]+([A-Z]+[a-z]*)+$`).MatchString(word):
			count++
			if !reasons[word] {
				t.Errorf("%s: names %s, which is not in the code", path, word)
			}
		}
	}
	if count < 40 {
		t.Errorf("%s: only %d names found", path, count)
	}
}

// hasCase reports whether each part of a case's name, or all of it, is among the texts of a test.
func hasCase(texts map[string]bool, name string) bool {
	if name == "" || texts[name] {
		return true
	}
	for part := range strings.SplitSeq(name, "/") {
		if !texts[part] {
			return false
		}
	}
	return true
}

// scenarios is the folder of those that several packages run.
const scenarios = "test/scenario"

// testCases are the texts that each test function, and what it refers to in its package, has as literals. Tests of several packages
// may have one name.
func testCases(files []file) map[string][]map[string]bool {
	packages := map[string]map[string][]ast.Node{} // by folder, then by name
	for _, f := range files {
		if !f.test() && f.folder() != scenarios {
			continue
		}
		if packages[f.folder()] == nil {
			packages[f.folder()] = map[string][]ast.Node{}
		}
		declared := packages[f.folder()]
		for _, decl := range f.pkg.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				declared[d.Name.Name] = append(declared[d.Name.Name], d)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if values, ok := spec.(*ast.ValueSpec); ok {
						for _, name := range values.Names {
							declared[name.Name] = append(declared[name.Name], values)
						}
					}
				}
			}
		}
	}
	cases := map[string][]map[string]bool{}
	for _, declared := range packages {
		declared["All"] = packages[scenarios]["All"] // the list that tests of other packages run
		for name := range declared {
			if strings.HasPrefix(name, "Test") {
				texts := map[string]bool{}
				gatherTexts(declared, name, map[string]bool{}, texts)
				cases[name] = append(cases[name], texts)
			}
		}
	}
	return cases
}

// gatherTexts adds the literals of a declaration and of those that it refers to.
func gatherTexts(declared map[string][]ast.Node, name string, seen, texts map[string]bool) {
	if seen[name] {
		return
	}
	seen[name] = true
	for _, declaration := range declared[name] {
		ast.Inspect(declaration, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
					texts[text] = true
				}
			case *ast.Ident:
				gatherTexts(declared, n.Name, seen, texts)
			}
			return true
		})
	}
}

// namesInCode are the literals of the code without its tests, and the constants of Kubernetes and the MCS API that it uses.
func namesInCode(files []file) map[string]bool {
	standard := regexp.MustCompile(`^(?:Service(?:Export|Import)(?:Reason|Condition)|ServiceTrafficDistribution)(\w+)$`)
	names := map[string]bool{}
	for _, f := range files {
		if f.test() || strings.HasPrefix(f.folder(), "test/") {
			continue
		}
		ast.Inspect(f.pkg, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
					names[text] = true
				}
			case *ast.SelectorExpr:
				if found := standard.FindStringSubmatch(n.Sel.Name); found != nil {
					names[found[1]] = true
				}
			}
			return true
		})
	}
	return names
}
