// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

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
