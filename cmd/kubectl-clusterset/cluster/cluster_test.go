// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
)

func TestDistinct(t *testing.T) {
	clusters := []*Cluster{{Context: "a"}, {Context: "b"}}
	for _, row := range []struct {
		b    Identity
		want string
	}{
		{Identity{ID: "west", UID: "2"}, ""},
		{Identity{ID: "west", UID: "1"}, "contexts a and b refer to the same cluster"},
		{Identity{ID: "east", UID: "2"}, "both have the id east"},
	} {
		err := distinct(clusters, []Identity{{ID: "east", UID: "1"}, row.b})
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%+v: got %v, want %q", row.b, err, row.want)
		}
	}
}
