// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testJoin joins all clusters. Their tokens live for as long as their API servers let them.
func testJoin(t *testing.T, b *bed) {
	args := []string{"join", "east", "west", "north"}
	for _, c := range b.all() { // over ways that can be cut
		args = append(args, "--server", c.Name()+"="+c.way.URL())
	}
	out := b.do(t, args...)
	for _, want := range []string{
		"east receives heartbeats from west", "east receives heartbeats from north",
		"west receives heartbeats from east", "west receives heartbeats from north",
		"north receives heartbeats from east", "north receives heartbeats from west",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say that %s:\n%s", want, out)
		}
	}
	if !strings.Contains(out, "unless its controller renews it") {
		t.Errorf("it does not say who renews the tokens:\n%s", out)
	}
	var set struct {
		Clusters []struct {
			Cluster string
			Members []struct {
				Cluster, State string
				Expires        *metav1.Time
				Synced         bool
			}
		}
	}
	must(t, json.Unmarshal([]byte(b.do(t, "status", "--wait", "--contexts", "east,west,north", "-o", "json")), &set))
	for _, c := range set.Clusters {
		if len(c.Members) != 2 {
			t.Errorf("%s has %d members", c.Cluster, len(c.Members))
		}
		for _, m := range c.Members {
			if m.State != "fresh" || !m.Synced || m.Expires == nil {
				t.Errorf("%s of %s: %+v", m.Cluster, c.Cluster, m)
				continue
			}
			days := 30 * 24 * time.Hour
			if m.Cluster == "north" {
				days = time.Hour
			}
			if left := time.Until(m.Expires.Time); left > days || left < days-10*time.Minute {
				t.Errorf("the credential of %s in %s lasts %s", m.Cluster, c.Cluster, left)
			}
		}
	}
}
