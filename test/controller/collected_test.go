// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

// TestCollectedWhileAMemberIsAway deletes an import by force, with all that
// Kubernetes collects of it, while a member cannot be seen: what the member
// contributed stays.
func TestCollectedWhileAMemberIsAway(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	west.start(t)
	way := east.joinOver(t, west)
	stop := east.start(t)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	east.create(t, demo, service("web", "10.64.0.10")+serviceExport("web"))
	const both = "ClusterSetIP of east,west Ready [east/10.64.0.10 west/10.65.0.10]"
	expect(t, web, both, east)

	stop()
	way.CutOff(link.Both)
	way.Reset()
	east.start(t)
	synced := func(want float64) func(context.Context) error {
		return east.metric(t, "clusterset_controller_member_synced", map[string]string{"cluster": "west"}, want)
	}
	eventually(t, "west unseen", synced(0))
	expect(t, web, both, east)

	imports := east.mcs.MulticlusterV1beta1().ServiceImports(demo)
	for name, remove := range map[string]func(){
		// The garbage collector deletes the copies, and then the import goes.
		"foreground": func() {
			must(t, imports.Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}))
		},
		// The import goes, and then the garbage collector is the quicker one.
		"background": func() {
			must(t, imports.Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
			must(t, east.DiscoveryV1().EndpointSlices(demo).DeleteCollection(t.Context(), metav1.DeleteOptions{},
				metav1.ListOptions{LabelSelector: export.LabelSourceCluster + "=west"}))
		},
	} {
		before, err := east.serviceImport(t.Context(), web)
		must(t, err)
		copies, err := east.slicesOf(t.Context(), web)
		must(t, err)
		remove()
		eventually(t, name+": another import", func(ctx context.Context) error {
			after, err := imports.Get(ctx, "web", metav1.GetOptions{})
			if err == nil && after.UID == before.UID {
				err = errors.New("the import is still the old one")
			}
			return err
		})
		expect(t, web, both, east)
		after, err := east.slicesOf(t.Context(), web)
		must(t, err)
		if len(after) != len(copies) {
			t.Errorf("%s: %d slices became %d", name, len(copies), len(after))
		}
	}
	must(t, synced(0)(t.Context()))

	// Its own word counts as soon as it is heard.
	west.unexport(t, web)
	eventually(t, "no slices in west", func(ctx context.Context) error {
		list, err := west.DiscoveryV1().EndpointSlices(demo).List(ctx, metav1.ListOptions{LabelSelector: export.LabelSourceCluster + "=west"})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d slices", len(list.Items))
		}
		return err
	})
	way.Reconnect()
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.10]", east)

	// What was collected once it may be is not remembered.
	must(t, imports.Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}))
	east.unexport(t, web)
	expect(t, web, "none", east)
	quiet(t, east) // it may be made once more by a controller that has not seen yet that the export is gone
	if _, err := imports.Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the import is there again, or: %v", err)
	}
}
