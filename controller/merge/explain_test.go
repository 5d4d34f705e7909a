// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

func TestExplain(t *testing.T) {
	v := newView
	for name, test := range map[string]struct {
		exports []*export.View
		want    string // precedence, then each property that is disagreed on
	}{
		"nothing": {nil, ""},
		"one":     {[]*export.View{v("east", 1, "80/TCP", "")}, "east"},
		"agree":   {[]*export.View{v("west", 2, "80/TCP", ""), v("east", 1, "80/TCP", "")}, "east west"},
		"type": {
			[]*export.View{v("east", 2, "80/TCP", "", headless), v("west", 1, "80/TCP", "")},
			`west east; type "ClusterSetIP" (east "Headless")`,
		},
		"a tie is by name": {
			[]*export.View{v("west", 1, "80/TCP", ""), v("east", 1, "80/TCP", "", headless)},
			`east west; type "Headless" (west "ClusterSetIP")`,
		},
		"ports are united": {
			[]*export.View{
				v("east", 1, "http:80/TCP", ""), v("west", 2, "http:80/TCP api:90/TCP", ""),
				v("north", 3, "http:80/TCP", ""),
			},
			`east west north; ports "api:90/TCP,http:80/TCP" (west "api:90/TCP,http:80/TCP")`,
		},
		"families are what all have": {
			[]*export.View{
				v("east", 1, "80/TCP", "", families(corev1.IPv4Protocol)),
				v("west", 2, "80/TCP", "", families(corev1.IPv6Protocol)),
			},
			`east west; ipFamilies "IPv4" (west "IPv6")`,
		},
		"several": {
			[]*export.View{v("east", 1, "80/TCP", "", local), v("west", 2, "80/TCP", "", labels("a=1"))},
			`east west; internalTrafficPolicy "Local" (west "Cluster"); exportedLabels "" (west "a=1")`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			contributions := contribute(test.exports...)
			account := Explain(contributions)
			if got := accountText(account); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			slices.Reverse(contributions)
			diff(t, "in another order", Explain(contributions), account)

			// It says what the condition says.
			if len(test.exports) == 0 {
				return
			}
			condition := conditionOf(t, Merge(newObserved(test.exports[0].Cluster), contributions).ExportConditions,
				"Conflict")
			if account.Conflict == "" {
				account.Conflict = agree
			}
			diff(t, "message", account.Conflict, condition.Message)
			var reasons []string
			for _, property := range account.Properties {
				if len(property.Dissent) > 0 {
					reasons = append(reasons, string(property.Reason))
				}
			}
			slices.Sort(reasons)
			if reason := strings.Join(reasons, ","); reason != condition.Reason && condition.Reason != "NoConflicts" {
				t.Errorf("got reasons %s, the condition has %s", reason, condition.Reason)
			}
		})
	}
}

func accountText(account Account) string {
	text := strings.Join(account.Precedence, " ")
	for _, property := range account.Properties {
		if len(property.Dissent) == 0 {
			continue
		}
		text += fmt.Sprintf("; %s %q", property.Field, property.Text(account.Spec))
		for _, dissent := range property.Dissent {
			text += fmt.Sprintf(" (%s %q)", dissent.Cluster, property.Text(dissent.Spec))
		}
	}
	return text
}
