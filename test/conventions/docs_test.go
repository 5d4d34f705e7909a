// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	program "github.com/clusterset-dns/clusterset-dns/cmd/clusterset-controller/command"
	kubectl "github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/command"
)

// documents returns the texts of all Markdown files for users and contributors, by path. It omits files below test, and
// the changelog, because it names things that no longer exist.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := walk(".md", func(path, text string) error {
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

// expectKnown checks that documents contain only known names, and at least this many different ones.
func expectKnown(t *testing.T, what string, known map[string]bool, least int, namesIn func(path, text string) []string) {
	t.Helper()
	found := map[string]bool{}
	for path, text := range documents(t) {
		for _, name := range namesIn(path, text) {
			found[name] = true
			if !known[name] {
				t.Errorf("%s: names the %s %s, which does not exist", path, what, name)
			}
		}
	}
	if len(found) < least {
		t.Errorf("documents name only %d of this kind: %s", len(found), what)
	}
}

// TestMetricsExist compares metrics in documents, alerts, their tests and the dashboard with the reference pages of
// metrics, which TestReference and the plugin's test compare with the code. Each metric must be in an alert or in the
// dashboard.
func TestMetricsExist(t *testing.T) {
	texts, defined := documents(t), map[string]bool{}
	pages := texts["docs/reference/metrics.md"] + texts["plugin/multicluster/README.md"]
	const metric = `((?:clusterset_controller|coredns_multicluster)_[a-z_]+)`
	for _, name := range matches(regexp.MustCompile("(?m)^[-*] `"+metric), pages) {
		defined[name] = true
	}
	named := regexp.MustCompile(`\b` + metric)
	short := regexp.MustCompile("`([a-z]+(?:_[a-z]+)+)`")
	expectKnown(t, "metric", defined, 20, func(path, text string) []string {
		names := matches(named, text)
		if path == failures { // where metrics have no prefix
			for _, name := range matches(short, text) {
				if name != "startup_timeout" && !strings.HasPrefix(name, "coredns_") {
					names = append(names, "clusterset_controller_"+name)
				}
			}
		}
		return names
	})
	unused := maps.Clone(defined)
	for _, file := range []string{"alerts.yaml", "alerts_test.yaml", "dashboard.json"} {
		for _, name := range matches(named, read(t, monitoring+file)) {
			name = regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")
			if delete(unused, name); !defined[name] {
				t.Errorf("%s names %s, which the pages do not have", file, name)
			}
		}
	}
	for name := range unused {
		t.Errorf("neither an alert nor the dashboard uses %s", name)
	}
}

const failures, monitoring = "docs/operate/failures.md", root + "/deploy/chart/files/monitoring/"

// TestNamesInDocumentsExist compares the reasons of Events and conditions in documents, and other names of that form,
// with the code.
func TestNamesInDocumentsExist(t *testing.T) {
	names := map[string]bool{"InternalIP": true, "ServiceImport": true} // of Kubernetes and the MCS API
	literal := regexp.MustCompile(`"(\w+)"`)
	standard := regexp.MustCompile(`\.(?:Service(?:Export|Import)(?:Reason|Condition)|ServiceTrafficDistribution)(\w+)`)
	// The security model names the tests of its claims.
	tests := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, f := range goFiles(t) {
		var defined []string
		if f.test() {
			defined = matches(tests, f.text)
		} else if !strings.HasPrefix(f.path, "test/") {
			defined = append(matches(literal, f.text), matches(standard, f.text)...)
		}
		for _, name := range defined {
			names[name] = true
		}
	}
	camelCase := regexp.MustCompile("`([A-Z][a-z]+(?:[A-Z]+[a-z]*)+)`")
	expectKnown(t, "name", names, 60, func(_, text string) []string {
		return matches(camelCase, fence.ReplaceAllString(text, ""))
	})
}

// TestThreatsAreTested: in the security model, each threat names as many tests as its defense has sentences. Each
// paragraph and list item names at least one, unless it is an introduction or not defended. All named scenarios must
// exist; TestNamesInDocumentsExist checks the other names.
func TestThreatsAreTested(t *testing.T) {
	known := strings.ReplaceAll(read(t, "../scenario/all.go"), " ", "_")
	named := regexp.MustCompile("`Test(?:Scenarios/(\\w+)|\\w+)`")
	sentence := regexp.MustCompile(`\. [A-Z]`)
	threats := 0
	text := fence.ReplaceAllString(documents(t)["docs/security.md"], "")
	for _, part := range regexp.MustCompile(`\n\n|\n- |\n\|`).Split(text, -1) {
		part = strings.TrimPrefix(strings.TrimSpace(part), "- ")
		want := 1
		switch cells := strings.Split(part, " | "); {
		case part == "", strings.HasPrefix(part, "#"), strings.HasSuffix(part, ":"), strings.HasPrefix(part, "**Not defended:**"),
			strings.HasPrefix(part, "| threat"), strings.HasPrefix(part, "---"):
			continue
		case len(cells) == 3:
			threats++
			want += len(sentence.FindAllString(cells[1], -1))
		}
		tests := named.FindAllStringSubmatch(part, -1)
		if len(tests) < want {
			t.Errorf("names %d tests, want %d: %s", len(tests), want, part)
		}
		for _, test := range tests {
			if test[1] != "" && !strings.Contains(known, `"`+test[1]) {
				t.Errorf("no scenario is called %s", test[1])
			}
		}
	}
	if threats < 10 {
		t.Errorf("only %d threats", threats)
	}
}

// foreignFlags are flags of kubectl, helm and other programs that documents mention without the program.
var foreignFlags = []string{
	"as", "as-group", "authentication-config", "bump-revision", "context", "fqdn-template", "help", "mark-compacted",
	"request-timeout", "reset-then-reuse-values", "service-account-issuer", "set", "set-json", "version",
}

// TestFlagsInDocumentsExist compares flags in documents with the flags that the programs define.
func TestFlagsInDocumentsExist(t *testing.T) {
	known := map[string]bool{}
	for _, name := range foreignFlags {
		known[name] = true
	}
	for _, flag := range append(flagsOf(program.Command("").Flags()), flagsOfAll(kubectl.Command())...) {
		known[flag.Name] = true
	}
	// A flag without a command, and a flag of the project's commands.
	alone, flag := regexp.MustCompile("`--([a-z][a-z-]*)"), regexp.MustCompile(`--([a-z][a-z-]*)`)
	ours := regexp.MustCompile("(?m)(?:^\\s*|`)(?:kubectl clusterset|clusterset-controller) [^`|\n]*")
	expectKnown(t, "flag", known, 40, func(_, text string) []string {
		found := matches(alone, text)
		for _, command := range ours.FindAllString(text, -1) {
			found = append(found, matches(flag, command)...)
		}
		return found
	})
}

// TestAnnotationsInDocumentsExist compares the project's labels and annotations in documents with the code.
// TestReference writes their reference page.
func TestAnnotationsInDocumentsExist(t *testing.T) {
	const domain = "clusterset-dns.github.io"
	defined := map[string]bool{}
	definition := regexp.MustCompile(`(?:\bDomain \+ "|"` + regexp.QuoteMeta(domain) + `)(/[^"]+)"`)
	for _, f := range goFiles(t) {
		for _, key := range matches(definition, f.text) {
			defined[domain+key] = !f.test() && !strings.HasPrefix(f.path, "test/") || defined[domain+key]
		}
	}
	ofDomain := regexp.MustCompile(`(?:^|[^.\w-])(` + regexp.QuoteMeta(domain) + `/[A-Za-z-]+)`)
	expectKnown(t, "key", defined, 20, func(_, text string) []string { return matches(ofDomain, text) })
}

func TestEveryAlertHasARunbook(t *testing.T) {
	alerts := read(t, monitoring+"alerts.yaml")
	want := matches(regexp.MustCompile(`(?m)^ +- alert: (\w+)$`), alerts)
	for _, name := range want {
		url := "runbook_url: https://github.com/clusterset-dns/clusterset-dns/blob/main/" + failures + "#" +
			strings.ToLower(name)
		if strings.Count(alerts, url+"\n") != 1 {
			t.Errorf("alert %s has no annotation %s", name, url)
		}
	}
	var got []string
	row := regexp.MustCompile(`(?m)^\|.*<a id="(\w+)"></a>\*\*(ClusterSet\w+)\*\*`)
	for _, match := range row.FindAllStringSubmatch(documents(t)[failures], -1) {
		if got = append(got, match[2]); match[1] != strings.ToLower(match[2]) {
			t.Errorf("%s: the row of %s has the anchor %s", failures, match[2], match[1])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 10 || !slices.Equal(got, want) {
		t.Errorf("%s has rows for %q, want %q", failures, got, want)
	}
}

// TestOnePageForADeadMember: the example for Alertmanager groups and inhibits by existing alerts and an existing label.
func TestOnePageForADeadMember(t *testing.T) {
	_, example, _ := strings.Cut(documents(t)[failures], "\nroute:\n")
	example, _, _ = strings.Cut("route:\n"+example, "```")
	var parsed struct {
		InhibitRules []any `json:"inhibit_rules"`
	}
	if err := yaml.Unmarshal([]byte(example), &parsed); err != nil || len(parsed.InhibitRules) == 0 {
		t.Errorf("the example inhibits nothing, %v:\n%s", err, example)
	}
	alerts := read(t, monitoring+"alerts.yaml")
	named := regexp.MustCompile(`ClusterSet[A-Z]\w+`).FindAllString(example, -1)
	for _, name := range named {
		_, alert, _ := strings.Cut(alerts, "- alert: "+name+"\n")
		alert, _, _ = strings.Cut(alert, "- alert: ")
		if !strings.Contains(regexp.MustCompile(`summary: .*`).FindString(alert), "$labels.member") {
			t.Errorf("%s is no alert with the label member", name)
		}
	}
	if len(named) < 3 {
		t.Errorf("the example has the alerts %v", named)
	}
}

// TestWorkflowsRunTargets: workflows run targets of the Makefile, so that every step also runs locally. Their actions
// are pinned by hash, and a token has write permission only if a job declares it.
func TestWorkflowsRunTargets(t *testing.T) {
	makefile := read(t, root+"/Makefile")
	workflows, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil || len(workflows) < 5 {
		t.Fatalf("%d workflows: %v", len(workflows), err)
	}
	used := regexp.MustCompile(`(?m)run: make ([a-z -]+)$|^ +part: \[(.*)\]$`)
	for _, path := range workflows {
		text := read(t, path)
		pins := len(regexp.MustCompile(`uses: \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+\n`).FindAllString(text, -1))
		if actions := strings.Count(text, "uses: "); pins != actions {
			t.Errorf("%s: %d of %d actions are pinned by hash", filepath.Base(path), pins, actions)
		}
		if !strings.Contains(text, "\npermissions:\n  contents: read\n") {
			t.Errorf("%s: tokens may write by default", filepath.Base(path))
		}
		for _, match := range used.FindAllStringSubmatch(text, -1) {
			targets := strings.ReplaceAll(match[1]+match[2], "FUZZTIME=1m", "")
			for _, target := range regexp.MustCompile(`[a-z-]+\b`).FindAllString(targets, -1) {
				if !strings.Contains(makefile, "\n.PHONY: "+target+"\n") {
					t.Errorf("%s: make %s: there is no such target", filepath.Base(path), target)
				}
			}
		}
	}
}
