// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"go/ast"
	"go/token"
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

// documents are the texts of all Markdown files for users and contributors, by path. Those below test are for the tests that they
// describe, and the changelog names what there was before.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := markdown(func(path string, text string) error {
		if path != "CHANGELOG.md" && !strings.HasPrefix(path, "test/") {
			texts[path] = text
		}
		return nil
	})
	if err != nil || len(texts) < 20 {
		t.Fatalf("%d documents found: %v", len(texts), err)
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
	short := regexp.MustCompile("`([a-z]+(?:_[a-z]+)+)`")
	seen := map[string]bool{}
	for path, text := range documents(t) {
		names := named.FindAllString(text, -1)
		if path == failureModes { // which leaves the prefix out
			for _, match := range short.FindAllStringSubmatch(text, -1) {
				if match[1] != "startup_timeout" && !strings.HasPrefix(match[1], "coredns_") {
					names = append(names, metricPrefixes["controller"]+match[1])
				}
			}
		}
		for _, name := range names {
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

const failureModes = "docs/operate/failure-modes.md"

// foreignNames are those of Kubernetes, and of tests, that documents name as they name reasons.
var foreignNames = []string{
	"CategorizeEndpoints", "ClusterProperty", "NodeTopologyConfig", "PreferSameTrafficDistribution", "ProxyTerminatingEndpoints", "ServiceTrafficDistribution",
	"SetEndpoints", // of test/scenario
}

// TestNamesInDocumentsExist holds the reasons of Events and conditions, and what else is named like them, against the code.
func TestNamesInDocumentsExist(t *testing.T) {
	names := namesInCode(goFiles(t))
	for _, name := range foreignNames {
		names[name] = true
	}
	count := 0
	for path, text := range documents(t) {
		for _, quoted := range regexp.MustCompile("`([A-Z][a-z]+(?:[A-Z]+[a-z]*)+)`").FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			count++
			if !names[quoted[1]] {
				t.Errorf("%s: names %s, which is not in the code", path, quoted[1])
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d names found in documents", count)
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
