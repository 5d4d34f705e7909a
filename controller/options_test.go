// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

func TestOptions(t *testing.T) {
	config := &rest.Config{Host: "https://192.0.2.1"}
	for name, test := range map[string]struct {
		options Options
		wrong   string
	}{
		"the least":     {Options{Config: config}, ""},
		"no config":     {Options{}, "no Config"},
		"a wrong id":    {Options{Config: config, Cluster: "a_b"}, "a_b"},
		"a wrong deny":  {Options{Config: config, DeniedNamespaces: []string{"["}}, "--denied-namespaces"},
		"preference":    {Options{Config: config, Prefer: "cluster"}, ""},
		"a wrong one":   {Options{Config: config, Prefer: "one two"}, `"one two" is no list of tiers`},
		"a limit":       {Options{Config: config, MemberLimits: limits.Limits{Services: 1, SliceBytes: 2 << 20}}, ""},
		"a wrong limit": {Options{Config: config, MemberLimits: limits.Limits{Endpoints: -1}}, "--member-endpoints -1"},
		"own id": {
			Options{Config: config, Cluster: "east", Members: []member.Static{{Cluster: "east"}}},
			"id of the local cluster",
		},
		"a member twice": {
			Options{Config: config, Members: []member.Static{{Cluster: "west"}, {Cluster: "west"}}},
			"another member has the same id",
		},
		"a wrong member": {Options{Config: config, Members: []member.Static{{Cluster: "a_b"}}}, "a_b"},
		"two members": {Options{
			Config: config, Cluster: "east",
			Members: []member.Static{{Cluster: "west"}, {Cluster: "north"}},
		}, ""},
		"a two-label id": {Options{Config: config, Cluster: "name.registry"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(test.options)
			if test.wrong == "" && err != nil || test.wrong != "" &&
				(err == nil || !strings.Contains(err.Error(), test.wrong)) {
				t.Errorf("got %v, want %q", err, test.wrong)
			}
		})
	}
	completed, err := Options{Config: config}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if completed.Namespace != member.DefaultNamespace ||
		completed.Clock == nil ||
		completed.LeaseDuration != DefaultLeaseDuration || completed.MemberLimits != limits.Default ||
		completed.Registry == nil {
		t.Errorf("got %+v", completed)
	}
}

// TestMaxImportIPs: half of the range up to what Kubernetes supports, else a default.
func TestMaxImportIPs(t *testing.T) {
	for _, test := range [][2]int{{4096, 2048}, {1 << 20, MostImportIPs}, {0, DefaultMaxImportIPs}} {
		if got := maxImportIPs(test[0]); got != test[1] {
			t.Errorf("range %d: %d, want %d", test[0], got, test[1])
		}
	}
}
