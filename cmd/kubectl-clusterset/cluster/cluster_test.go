// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

func TestDistinct(t *testing.T) {
	for want, b := range map[string]*Cluster{
		"<nil>":                               {Context: "b", ID: "west", UID: "2"},
		"contexts a and b refer to the same":  {Context: "b", ID: "west", UID: "1"},
		"contexts a and b both have the id e": {Context: "b", ID: "east", UID: "2"},
	} {
		if err := distinct([]*Cluster{{Context: "a", ID: "east", UID: "1"}, b}); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestNoCRDs: the fix overwrites fields of another field manager, such as Helm.
func TestNoCRDs(t *testing.T) {
	const want = "the MCS API is not served: apply its CRDs with `kubectl --context east apply --server-side --force-conflicts -f "
	_, _, err := (&Cluster{Context: "east", Kube: fake.NewClientset()}).ServiceExports(t.Context(), "shop")
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestNamesAreThoseOfTheController: they are the API between the two.
func TestNamesAreThoseOfTheController(t *testing.T) {
	for here, there := range map[string]string{
		domain: export.Domain, DefaultNamespace: member.DefaultNamespace, HeartbeatLease: member.HeartbeatLease,
		MemberLease: memberstate.LeasePrefix, ClusterLabel: member.ClusterLabel, ReaderLabel: member.ReaderLabel,
		KubeconfigKey: member.KubeconfigKey, StateAnnotation: memberstate.StateAnnotation, OriginAnnotation: memberstate.OriginAnnotation,
		DrainAnnotation: member.DrainAnnotation, CIDRsAnnotation: member.CIDRsAnnotation, ManagedByLabel: export.LabelManagedBy,
		AddressAnnotation: export.AnnotationNodeAddress, ServiceLabel: export.LabelService, SourceLabel: export.LabelSourceCluster,
		Account("east"): member.AccountPrefix + "east", ManagedSlices: export.LabelSliceManagedBy + "=" + export.Manager,
	} {
		if here != there {
			t.Errorf("%q is %q of the controller", here, there)
		}
	}
}
