// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// TestNamesAreThoseOfTheController holds the API between the two.
func TestNamesAreThoseOfTheController(t *testing.T) {
	for here, there := range map[string]string{
		domain: export.Domain, DefaultNamespace: member.DefaultNamespace, HeartbeatLease: member.HeartbeatLease,
		MemberLease: memberstate.LeasePrefix, ClusterLabel: member.ClusterLabel, ReaderLabel: member.ReaderLabel,
		KubeconfigKey: member.KubeconfigKey, StateAnnotation: memberstate.StateAnnotation, OriginAnnotation: memberstate.OriginAnnotation,
		DrainAnnotation: member.DrainAnnotation, CIDRsAnnotation: member.CIDRsAnnotation, SetLabel: export.LabelSet, ManagedByLabel: export.LabelManagedBy,
		ServiceLabel: export.LabelService, SourceLabel: export.LabelSourceCluster,
		Account("east"): member.AccountPrefix + "east",
	} {
		if here != there {
			t.Errorf("%q is %q of the controller", here, there)
		}
	}
	if SetLabel != member.HeartbeatSetAnnotation {
		t.Errorf("the heartbeat names the set by %q", member.HeartbeatSetAnnotation)
	}
	for _, set := range []string{"", "blue"} {
		of := export.Set(set)
		if got, want := Set(set).Slices(), export.LabelSliceManagedBy+"="+of.Manager()+","+of.Selector(); got != want {
			t.Errorf("%s: slices are selected by %q, and by %q in the controller", of, got, want)
		}
		if Set(set).String() != of.String() {
			t.Errorf("%q is %q", Set(set), of)
		}
	}
}
