// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

func asks(key, value string) func(*export.View) {
	return func(view *export.View) { view.Spec.Annotations = map[string]string{key: value} }
}

// TestBorder: what is outside is not used, not even if nothing else is left, and not silently.
func TestBorder(t *testing.T) {
	for name, test := range map[string]struct{ within, used, told string }{
		"none":               {"", "10.1.0.1 10.2.0.1 10.3.0.1", ""},
		"a region":           {"same(region)", "10.1.0.1 10.2.0.1", `True Limited Endpoints of these clusters are used: same(region); not "west".`},
		"all":                {"*", "10.1.0.1 10.2.0.1 10.3.0.1", "True Limited Endpoints of these clusters are used: *; all exporting clusters are inside."},
		"only another":       {"west", "10.1.0.1 10.3.0.1", `True Limited Endpoints of these clusters are used: west; not "near".`},
		"invalid, so local":  {"one two", "10.1.0.1", `False InvalidBorder`},
		"unknown properties": {"same(planet)", "10.1.0.1", `True Limited Endpoints of these clusters are used: same(planet); not "near", "west".`},
	} {
		t.Run(name, func(t *testing.T) {
			views := contribute(
				newView("east", 1, "80/TCP", "10.1.0.1", asks(export.AnnotationWithin, test.within)),
				newView("near", 2, "80/TCP", "10.2.0.1"), newView("west", 3, "80/TCP", "10.3.0.1"))
			views[1].Properties = map[string]string{"region": "eu"}
			views[2].Properties = map[string]string{"region": "us"}
			observed := newObserved("east")
			observed.Properties = map[string]string{"region": "eu"}
			_, result := settled(t, observed, views)
			diff(t, "used", usedText(result), test.used)
			diff(t, "slices", len(result.EndpointSlices), 3)
			diff(t, "clusters", len(result.ServiceImport.Status.Clusters), 3)
			told := ""
			if c := meta.FindStatusCondition(result.ServiceImport.Status.Conditions, ConditionWithin); c != nil {
				told = string(c.Status) + " " + c.Reason + " " + c.Message
			}
			if !strings.HasPrefix(told, test.told) || test.told == "" && told != "" {
				t.Errorf("got  %s\nwant %s", told, test.told)
			}

			// Nothing is left inside.
			views[0].View.Slices[0].Endpoints, views[1].View.Slices[0].Endpoints = nil, nil
			used := usedText(Merge(observed, views))
			if inside := strings.Contains(test.used, "10.3.0.1"); inside != (used == "10.3.0.1") || !inside && used != "" {
				t.Errorf("with nothing else, %q is used", used)
			}
		})
	}
}

// TestOnlyExportsSetTheBorder: what somebody writes on an import has no effect, and does not stay.
func TestOnlyExportsSetTheBorder(t *testing.T) {
	views := contribute(newView("east", 1, "80/TCP", "10.1.0.1"), newView("west", 2, "80/TCP", "10.2.0.1"))
	observed, _ := settled(t, newObserved("east"), views)
	observed.ServiceImport.Annotations[export.AnnotationWithin] = "local"
	result := Merge(observed, views)
	diff(t, "used", usedText(result), "10.1.0.1 10.2.0.1")
	diff(t, "annotation", result.ServiceImport.Annotations[export.AnnotationWithin], "")
}
