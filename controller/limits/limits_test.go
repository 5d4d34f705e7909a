// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"strings"
	"testing"
)

// TestExcessTells the administrator what to do about each limit.
func TestExcessTells(t *testing.T) {
	excess := Excess{Services: "demo/a", Endpoints: "demo/b", SliceBytes: "demo/c", Memory: "demo/e"}
	if len(excess) != len(All) {
		t.Errorf("%d of %d limits are tried", len(excess), len(All))
	}
	for limit, want := range map[Limit]string{
		Services: "--member-services", Endpoints: "--member-endpoints", SliceBytes: "524288 bytes",
		Memory: "memory limit of the controller",
	} {
		err := (&Store{cluster: "west", limits: Default, excess: Excess{limit: excess[limit]}}).Exceeded()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), excess[limit]) ||
			!strings.HasPrefix(err.Error(), "cluster west") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := (&Store{}).Exceeded(); err != nil {
		t.Error(err)
	}
}
