// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/diagnosis"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// testConnectivity: `kubectl clusterset test connectivity` reports exactly the paths that are cut, and leaves nothing behind.
func testConnectivity(t *testing.T, b *bed) {
	wants := map[string]state.ProbeStep{
		"east>west": state.ProbeLargeLost, "west>east": state.ProbeLargeLost, "west>north": state.ProbeTimeout,
		"north>east": state.ProbeUnresolved, "north>west": state.ProbeUnresolved, "north>north": state.ProbeUnresolved,
	}
	cut(t, b, `
ip saddr NORTH udp dport 53 reject
ct state new ip saddr WEST ip daddr NORTH drop
ip saddr EAST ip daddr WEST ip length > 1300 drop
ip saddr WEST ip daddr EAST ip length > 1300 drop`)
	var found struct{ Paths diagnosis.ConnectivityReport }
	must(t, json.Unmarshal([]byte(b.run(t,
		"kubectl clusterset test connectivity --contexts east,west,north -o json --timeout 30s && exit 1 || test $? = 3")), &found))
	if len(found.Paths) != 3*3 {
		t.Errorf("%d paths", len(found.Paths))
	}
	for _, path := range found.Paths {
		if want := cmp.Or(wants[path.From+">"+path.To], state.ProbeOK); path.Step != want {
			t.Errorf("want %q, got %+v", want, path)
		}
	}
	for _, c := range b.clusters {
		b.run(t, "kubectl --context "+c.Name()+" -n clusterset-dns wait pods,services,serviceexports "+
			"-l app.kubernetes.io/component=probe --for delete --timeout 60s")
	}
	cut(t, b, "")
}

// cut makes nodes drop packets of pods. In the rules, the name of a cluster stands for the range of its pods.
func cut(t *testing.T, b *bed, rules string) {
	for _, c := range b.clusters {
		rules = strings.ReplaceAll(rules, strings.ToUpper(c.Name()), c.Options().PodCIDRs[0].String())
	}
	for _, c := range b.clusters {
		must(t, c.nodes.Filter("table ip cut\ndelete table ip cut\ntable ip cut {\nchain forward {\n"+
			"type filter hook forward priority 0\n"+rules+"\n}\n}\n"))
	}
}
