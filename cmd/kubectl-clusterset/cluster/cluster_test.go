// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
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

// TestNamesAreThoseOfTheController holds the API between the two.
func TestNamesAreThoseOfTheController(t *testing.T) {
	for here, there := range map[string]string{
		domain: export.Domain, DefaultNamespace: member.DefaultNamespace, HeartbeatLease: member.HeartbeatLease,
		MemberLease: memberstate.LeasePrefix, ClusterLabel: member.ClusterLabel, ReaderLabel: member.ReaderLabel,
		KubeconfigKey: member.KubeconfigKey, StateAnnotation: memberstate.StateAnnotation, OriginAnnotation: memberstate.OriginAnnotation,
		DrainAnnotation: member.DrainAnnotation, CIDRsAnnotation: member.CIDRsAnnotation, ManagedByLabel: export.LabelManagedBy,
		ServiceLabel: export.LabelService, SourceLabel: export.LabelSourceCluster,
		Account("east"): member.AccountPrefix + "east", ManagedSlices: export.LabelSliceManagedBy + "=" + export.Manager,
	} {
		if here != there {
			t.Errorf("%q is %q of the controller", here, there)
		}
	}
}
