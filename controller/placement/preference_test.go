// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"strings"
	"testing"

	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

func TestPreference(t *testing.T) {
	for _, test := range []struct {
		distribution, annotation, operator string
		want                               preference
		wrong                              bool
	}{
		{"", "", "", preference{}, false},
		{"", "", "none", preference{}, false},
		{"", "", "cluster", preference{Cluster: true}, false},
		{"", "cluster", "", preference{Cluster: true}, false},
		{"", "cluster", "none", preference{Cluster: true}, false},
		{"", "none", "cluster", preference{}, false},
		{"PreferClose", "", "", preference{Zone: true}, false},
		{"PreferSameZone", "", "", preference{Zone: true}, false},
		{"PreferSameNode", "", "", preference{Node: true, Zone: true}, false},
		{"PreferSameZone", "", "cluster", preference{Zone: true}, false},
		{"PreferSameZone", "none", "cluster", preference{Zone: true}, false},
		{"PreferSameZone", "cluster", "", preference{Zone: true, Cluster: true}, false},
		{"PreferSameNode", "cluster", "none", preference{Node: true, Zone: true, Cluster: true}, false},
		{"PreferOther", "", "", preference{}, false},
		{"PreferOther", "cluster", "", preference{Cluster: true}, false},
		{"", "local > west", "", preference{Cluster: true}, false},
		{"", "west > local", "cluster", preference{}, false},
		{"", "", "local > west", preference{Cluster: true}, false},
		{"", "one two", "", preference{}, true},
		{"", "one two", "cluster", preference{}, true},
		{"PreferSameZone", ">", "", preference{Zone: true}, true},
		{"", strings.Repeat("x", 1<<16), "", preference{}, true},
	} {
		imported := &v1beta1.ServiceImport{}
		imported.Annotations = map[string]string{export.AnnotationPrefer: test.annotation}
		if test.distribution != "" {
			imported.Spec.TrafficDistribution = &test.distribution
		}
		here := Here{Prefer: test.operator, Nodes: Nodes{Zones: []string{"a"}}}
		got := preference{}
		if hints := here.Of(imported, nil).(*placement).hints; hints != nil {
			got = hints.preference
		}
		_, err := tiersOf(test.distribution, test.annotation, test.operator)
		if got != test.want || (err != nil) != test.wrong {
			t.Errorf("%q, %.20q, %q: got %+v, %v", test.distribution, test.annotation, test.operator, got, err)
		}
		if err != nil && len(err.Error()) > 200 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	}
}
