// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
)

func TestEndpointsStandIn(t *testing.T) {
	for name, test := range map[string]struct{ slices, want string }{ // as in recordtest
		"none":           {"", "[] [{_http._tcp 80}]"},
		"ready":          {"east[http=8080 admin=1]: 10.1.0.1; west[http=8080]: !10.1.0.2 10.1.0.3", "[10.1.0.1 10.1.0.3] [{_http._tcp 8080}]"},
		"one terminates": {"east[http=8080]: 10.1.0.1; west[http=9090]: ~10.1.0.2", "[10.1.0.1] [{_http._tcp 8080}]"},
		"all terminate":  {"east[http=9090]: !10.1.0.1 ~10.1.0.2", "[10.1.0.2] [{_http._tcp 9090}]"},
		"not ready":      {"east[http=9090]: !10.1.0.1", "[] [{_http._tcp 80}]"},
	} {
		var from []*record.Endpoints
		for _, slice := range recordtest.Slices(test.slices) {
			from = append(from, record.FromEndpointSlice(slice, false))
		}
		imported := build(recordtest.ClusterSetIP("", "http=80")).Import
		filled := imported.WithEndpoints(from)
		if got := fmt.Sprint(filled.Addrs, filled.Ports); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if !imported.LacksAddress() {
			t.Errorf("%s: the import itself was changed", name)
		}
	}
}
