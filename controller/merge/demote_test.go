// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestDemote: a slice of a demoted cluster is demoted if and only if other clusters have ready endpoints for everything
// that it serves.
func TestDemote(t *testing.T) {
	type exports = []*export.View
	const ready, demoted, unready = "true true false", "false true true", "false false false" // ready, serving, terminating
	v := newView
	for name, test := range map[string]struct {
		silent string // ports and endpoints of the silent cluster's slice
		ports  string
		others exports
		kind   func(*export.View)
		want   string // first endpoint of the silent cluster
	}{
		"no other cluster":          {"10.1.0.1", "80/TCP", nil, nil, ready},
		"another's is not ready":    {"10.1.0.1", "80/TCP", exports{v("b", 2, "80/TCP", "!10.2.0.1")}, nil, ready},
		"another port":              {"10.1.0.1", "a:80/TCP", exports{v("b", 2, "b:81/TCP", "10.2.0.1")}, nil, ready},
		"both ports, in two":        {"10.1.0.1", "a:80/TCP b:81/TCP", exports{v("b", 2, "a:80/TCP", "10.2.0.1"), v("c", 3, "b:81/TCP", "10.3.0.1")}, nil, demoted},
		"another name, one number":  {"10.1.0.1", "a:80/TCP", exports{v("b", 2, "b:80/TCP", "10.2.0.1")}, nil, demoted},
		"another family":            {"10.1.0.1", "80/TCP", exports{v("b", 2, "80/TCP", "fd00::1")}, nil, ready},
		"headless":                  {"10.1.0.1", "80/TCP", exports{v("b", 2, "80/TCP", "10.2.0.1", headless)}, headless, demoted},
		"headless without ports":    {"10.1.0.1", "", exports{v("b", 2, "", "10.2.0.1", headless)}, headless, demoted},
		"headless, nothing ready":   {"10.1.0.1", "", exports{v("b", 2, "", "!10.2.0.1", headless)}, headless, ready},
		"headless, one has no port": {"10.1.0.1", "", exports{v("b", 2, "b:81/TCP", "10.2.0.1", headless)}, headless, demoted},
	} {
		t.Run(name, func(t *testing.T) {
			silent := v("a", 1, test.ports, test.silent)
			if test.kind != nil {
				test.kind(silent)
			}
			contributions := append([]Contribution{{View: silent, Demote: true}}, contribute(test.others...)...)
			state := func(slice *discoveryv1.EndpointSlice) string {
				c := slice.Endpoints[0].Conditions
				return fmt.Sprint(*c.Ready, *c.Serving, *c.Terminating)
			}
			// Cluster a is unreachable from north, or drained in its own view.
			for _, cluster := range []string{"north", "a"} {
				for _, slice := range Merge(newObserved(cluster), contributions).EndpointSlices {
					source := slice.Labels[export.LabelSourceCluster]
					if source == "a" {
						diff(t, "state in "+cluster, state(slice), test.want)
					} else if len(slice.Endpoints) > 0 && state(slice) == demoted {
						t.Errorf("cluster %s is demoted too", source)
					}
				}
			}
		})
	}
}
