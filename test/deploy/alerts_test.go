// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var promtool = pinned("promtool", "promtool")

// TestEveryAlertIsTested breaks each alert, and runs the tests of the alerts: those that expect it to fire must fail
// where it never does, and those that expect it to stay silent where it always fires.
func TestEveryAlertIsTested(t *testing.T) {
	rules, tests := parse(t, read(t, monitoring+"alerts.yaml")), parse(t, read(t, monitoring+"alerts_test.yaml"))
	if output, err := ruleTests(t, rules, tests); err != nil {
		t.Fatalf("the tests fail without a change: %v\n%s", err, output)
	}
	count := 0
	for _, rule := range elements(t, rules, "groups", "rules") {
		count++
		name, expression := rule["alert"].(string), rule["expr"]
		rule["expr"] = "vector(0) > 1"
		if output, err := ruleTests(t, rules, only(t, tests, name, true)); err == nil {
			t.Errorf("no test notices that alert %s never fires:\n%s", name, output)
		}
		// What it is about is there, whatever its value.
		bare, ok := strings.CutSuffix(
			regexp.MustCompile(`\s(==|>|<) [0-9]+$`).ReplaceAllString(strings.TrimSpace(expression.(string)), "\x00"),
			"\x00")
		if !ok {
			bare = "vector(1)"
		}
		rule["expr"] = bare
		if output, err := ruleTests(t, rules, only(t, tests, name, false)); err == nil {
			t.Errorf("no test notices that alert %s fires for %s:\n%s", name, bare, output)
		}
		rule["expr"] = expression
	}
	if count < 5 {
		t.Errorf("only %d alerts", count)
	}
}

// ruleTests runs tests of rules.
func ruleTests(t *testing.T, rules, tests map[string]any) (string, error) {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]map[string]any{"alerts.yaml": rules, "alerts_test.yaml": tests} {
		text, err := yaml.Marshal(content)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	return try(t.Context(), t, "", promtool(t), "test", "rules", filepath.Join(folder, "alerts_test.yaml"))
}

// only are the tests of one alert that expect it to fire, or those that expect it to stay silent.
func only(t *testing.T, tests map[string]any, alert string, fires bool) map[string]any {
	t.Helper()
	var kept []any
	for _, each := range elements(t, tests, "tests") {
		var expectations []any
		for _, one := range elements(t, each, "alert_rule_test") {
			if _, expected := one["exp_alerts"]; one["alertname"] == alert && expected == fires {
				expectations = append(expectations, one)
			}
		}
		if len(expectations) > 0 {
			each = maps.Clone(each)
			each["alert_rule_test"] = expectations
			kept = append(kept, each)
		}
	}
	selected := maps.Clone(tests)
	selected["tests"] = kept
	return selected
}

// elements are those of a list, or of the lists in the elements of a list.
func elements(t *testing.T, in map[string]any, fields ...string) (all []map[string]any) {
	t.Helper()
	list, _ := in[fields[0]].([]any)
	for _, element := range list {
		object, ok := element.(map[string]any)
		switch {
		case !ok:
			t.Fatalf("%s has %v", fields[0], element)
		case len(fields) > 1:
			all = append(all, elements(t, object, fields[1:]...)...)
		default:
			all = append(all, object)
		}
	}
	return all
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	parsed := map[string]any{}
	must(t, yaml.Unmarshal([]byte(text), &parsed))
	return parsed
}

// TestOnePageForADeadMember: the example for Alertmanager groups and inhibits by alerts and a label that exist.
func TestOnePageForADeadMember(t *testing.T) {
	_, example, _ := strings.Cut(read(t, root+"/docs/operate/failures.md"), "```yaml\nroute:")
	example, _, _ = strings.Cut(example, "```")
	parsed := parse(t, "route:"+example)
	alerts := map[string]string{}
	for _, rule := range elements(t, parse(t, read(t, monitoring+"alerts.yaml")), "groups", "rules") {
		alerts[rule["alert"].(string)] = rule["annotations"].(map[string]any)["summary"].(string)
	}
	named := regexp.MustCompile(`ClusterSet[A-Z]\w+`).FindAllString(example, -1)
	for _, name := range named {
		if !strings.Contains(alerts[name], "$labels.member") {
			t.Errorf("%s is no alert with the label member: %q", name, alerts[name])
		}
	}
	if len(named) < 3 || len(elements(t, parsed, "inhibit_rules")) == 0 {
		t.Errorf("the example is\n%s", example)
	}
}
