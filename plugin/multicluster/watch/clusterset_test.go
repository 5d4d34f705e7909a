// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// TestObjectsOfOneClusterSetAreSelected: besides what else selects them. Two sets never share a watch.
func TestObjectsOfOneClusterSetAreSelected(t *testing.T) {
	keys := map[string]string{}
	for _, set := range []string{"", "blue", "green"} {
		options := Options{ClusterSet: set}
		key, err := options.key()
		if err != nil {
			t.Fatal(err)
		}
		if other, used := keys[key]; used {
			t.Errorf("sets %q and %q share a watch", set, other)
		}
		keys[key] = set
		for _, others := range []string{"", withServiceName, "tier in (a, b)"} {
			selector, err := labels.Parse(options.selects(others))
			if err != nil {
				t.Fatal(err)
			}
			for _, of := range []string{"", "blue", "green"} {
				object := labels.Set{"tier": "a", withServiceName: "web"}
				if of != "" {
					object[LabelClusterSet] = of
				}
				if selector.Matches(object) != (of == set) {
					t.Errorf("set %q with %q: an object of %q is selected: %t", set, others, of, of != set)
				}
				delete(object, "tier")
				delete(object, withServiceName)
				if others != "" && selector.Matches(object) {
					t.Errorf("set %q forgets %q", set, others)
				}
			}
		}
	}
}
