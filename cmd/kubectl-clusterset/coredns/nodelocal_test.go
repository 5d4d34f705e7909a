// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"strings"
	"testing"
)

// nodeLocal is the Corefile of Kubernetes' manifest of NodeLocal DNSCache.
const nodeLocal = `cluster.local:53 {
    errors
    cache {
            success 9984 30
            denial 9984 5
    }
    reload
    loop
    bind 169.254.20.10 10.96.0.10
    forward . __PILLAR__CLUSTER__DNS__ {
            force_tcp
    }
    prometheus :9253
    health 169.254.20.10:8080
    }
in-addr.arpa:53 {
    errors
    bind 169.254.20.10 10.96.0.10
    forward . __PILLAR__CLUSTER__DNS__ {
            force_tcp
    }
    }
.:53 {
    errors
    cache 30
    bind 169.254.20.10 10.96.0.10
    forward . __PILLAR__UPSTREAM__SERVERS__
    }
`

func TestNodeLocalCachePassesZone(t *testing.T) {
	const zone = "clusterset.local"
	for name, test := range map[string]struct {
		corefile string
		passes   bool
	}{
		"as Kubernetes has it":             {nodeLocal, false},
		"with the block that is suggested": {nodeLocal + parse(t, nodeLocal).Passing(zone) + "\n", true},
		"all goes to the cluster's DNS": {strings.ReplaceAll(nodeLocal, "__PILLAR__UPSTREAM__SERVERS__",
			"__PILLAR__CLUSTER__DNS__"), true},
		"no server block for the root zone": {"cluster.local {\n forward . 10.96.0.2\n}", false},
		"nothing is forwarded":              {"cluster.local {\n errors\n}\n. {\n errors\n}", false},
	} {
		if got := parse(t, test.corefile).Passes(zone); got != test.passes {
			t.Errorf("%s: got %v", name, got)
		}
	}
	const want = `clusterset.local:53 {
    errors
    cache {
        success 9984 5
        denial 9984 1
    }
    reload
    bind 169.254.20.10 10.96.0.10
    forward . __PILLAR__CLUSTER__DNS__ {
        force_tcp
    }
}`
	if got := parse(t, nodeLocal).Passing(zone + "."); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
