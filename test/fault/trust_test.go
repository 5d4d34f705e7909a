// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

// TestTrust: what a member says is kept out while it may be another one, or
// have lost its memory.
func TestTrust(t *testing.T) {
	b := newBed(t)
	b.fault("most exports are gone in one list", testMostExportsLost)
	b.fault("another cluster has its id, and a person confirms it", func(b *bed) { testAnotherCluster(b, true) })
	b.fault("another cluster has its id, and stays", func(b *bed) { testAnotherCluster(b, false) })
	b.fault("it is rebuilt under its id", testRebuilt)
}

// testMostExportsLost: they are kept until they are back, or a person says that
// it is so.
func testMostExportsLost(b *bed) {
	p := pair{b.east, b.west}
	b.alone() // what counts is the share of all services
	lost := []string{"solo", "db", "lone"}
	left := view{
		"web":  healthy["web"],
		"solo": gone,
		"db":   "north/10.66.0.3 -> 10.66.0.3",
		"lone": gone,
	}
	b.mayGo([]string{"solo", "lone"}, b.west, b.north)
	lose := func() {
		b.east.stop()
		for _, name := range lost {
			b.unexport(b.west, name)
		}
		b.expect(left, b.west, b.north)
		b.start(b.east)
		b.judged(p, "ExportsLost")
		b.everywhere(left, map[*cluster]view{b.east: westDemoted})
	}
	lose()
	for _, name := range lost {
		b.export(b.west, name)
	}
	b.expect(healthy, b.west, b.north) // else a heartbeat may come that confirms that some of them are lost
	b.beat(b.pairs()...)
	b.expect(healthy)

	lose()
	b.pass(time.Minute, b.pairs()...)
	b.everywhere(left, map[*cluster]view{b.east: westDemoted})
	b.mayGo([]string{"solo", "lone"})
	b.annotate(b.west, controller.AnnotationConfirm, b.token())
	b.judged(p, "Heard")
	b.expect(left)
	b.calm()
}

// alone waits until what other tests exported is gone.
func (b *bed) alone() {
	b.Helper()
	b.eventually("slices of this test alone", func(ctx context.Context) error {
		for _, c := range b.all() {
			list, err := c.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: export.LabelSourceCluster})
			if err != nil {
				return err
			}
			for _, slice := range list.Items {
				if slice.Namespace != b.namespace {
					return fmt.Errorf("%s has slice %s/%s", c.Name(), slice.Namespace, slice.Name)
				}
			}
		}
		return nil
	})
}

// token is what the newer of two Events of a hold says to confirm.
func (b *bed) token() (token string) {
	b.Helper()
	b.eventually("Event", func(ctx context.Context) error {
		secret, err := b.east.CoreV1().Secrets(system).Get(ctx, "member-west", metav1.GetOptions{})
		if err != nil {
			return err
		}
		events, err := b.east.CoreV1().Events(system).List(ctx, metav1.ListOptions{
			FieldSelector: "reason=" + controller.EventMemberHeld + ",involvedObject.uid=" + string(secret.UID),
		})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			// They end with it, and it is a time: the last one is the newest.
			_, last, _ := strings.Cut(event.Message, " of this Secret is ")
			token = max(token, last)
		}
		if len(events.Items) < 2 {
			return fmt.Errorf("there are %d Events", len(events.Items))
		}
		return nil
	})
	return token
}

// testAnotherCluster: the UID that the heartbeat carries changes, and what was
// known is kept until a person says that it is so, or it was the same for a
// while.
func testAnotherCluster(b *bed, byPerson bool) {
	const uid = "3f0c8dd6-5f1e-4b7a-9d43-0d7a3c3f9d11"
	p := pair{b.east, b.west}
	b.west.stop() // it would write its own UID again
	live := b.pairs(p, pair{b.north, b.west})
	held := func() {
		b.Helper()
		b.expect(healthy, b.west)
		b.expect(westDemoted, b.east, b.north)
	}
	b.heartbeatOf(b.west, uid)
	b.judged(p, "AnotherCluster")
	b.judged(pair{b.north, b.west}, "AnotherCluster")
	held()
	// What it says is not believed.
	b.mayGo([]string{"solo"})
	b.unexport(b.west, "solo")
	b.must(b.west.DiscoveryV1().EndpointSlices(b.namespace).DeleteCollection(b.Context(), metav1.DeleteOptions{}, metav1.ListOptions{
		LabelSelector: export.LabelSourceCluster + "=west," + export.LabelService + "=solo",
	}))
	b.heartbeatOf(b.west, uid)
	b.pass(4*time.Second, live...)
	b.expect(westDemoted, b.east, b.north)

	if byPerson {
		b.annotate(b.west, controller.AnnotationConfirm, "something else")
		b.expect(westDemoted, b.east, b.north)
		b.annotate(b.west, controller.AnnotationConfirm, uid)
		b.judged(p, "Heard")
		b.expect(healthy.with("solo", gone), b.east)
		b.expect(westDemoted, b.north) // it was not asked
		return
	}
	for range 61 {
		b.pass(5*time.Second, live...)
		b.heartbeatOf(b.west, uid)
	}
	b.judged(p, "Heard")
	b.judged(pair{b.north, b.west}, "Heard")
	b.expect(healthy.with("solo", gone), b.east, b.north)
}

// heartbeatOf renews the heartbeat of a cluster in its controller's stead, and
// waits until the others heard it.
func (b *bed) heartbeatOf(c *cluster, uid string) {
	b.Helper()
	b.eventually("heartbeat", func(ctx context.Context) error {
		leases := c.CoordinationV1().Leases(system)
		lease, err := leases.Get(ctx, member.HeartbeatLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, member.HeartbeatUIDAnnotation, uid)
		now := metav1.NowMicro()
		lease.Spec.RenewTime = &now
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	b.eventually("heartbeat heard", func(context.Context) error {
		for _, p := range b.pairs() {
			if p.writer != c {
				continue
			}
			if age, err := p.age(); err != nil || age > 0 {
				return errors.Join(err, fmt.Errorf("the last heartbeat that %s heard is %s old", p.reader.Name(), age))
			}
		}
		return nil
	})
}

// uid is that of a cluster's namespace kube-system.
func (b *bed) uid(c *cluster) string {
	b.Helper()
	namespace, err := c.CoreV1().Namespaces().Get(b.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	b.must(err)
	return string(namespace.UID)
}

// testRebuilt: west is lost, and a new and empty API server has its id. East
// gets the credential, and keeps what it knows until a person confirms that
// nothing of it is left.
func testRebuilt(b *bed) {
	p := pair{b.east, b.west}
	plane := controlplanetest.Start(b.t, controlplane.Options{Name: "west-again", Zones: []string{}})[0]
	again := b.cluster(plane)
	again.setClock(b.west.clock.Now())
	again.options.Cluster = "west"
	b.createNamespace(again)
	live := b.pairs(p)
	b.ways[p].CutOff(link.Both)
	b.ways[p].Reset()
	b.falls(36*time.Second, live...)
	b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})

	kubeconfig, err := plane.ServiceAccountKubeconfig(b.Context(), system, "clusterset-member")
	b.must(err)
	b.others = append(b.others, again)
	b.start(again)
	b.replace(p, kubeconfig)
	b.comesToBe(p, "AnotherCluster")
	b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
	// It begins to export, and is not believed yet.
	b.service(again, "solo", false)
	b.endpoints(again, "solo", "10.65.9.2")
	b.export(again, "solo")
	b.eventually("export", func(ctx context.Context) error {
		o, err := b.objects(ctx, again)
		if err == nil && len(o.sources["solo"]) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
	b.mayGo([]string{"lone"}, b.east)
	b.annotate(b.west, controller.AnnotationConfirm, b.uid(again))
	b.judged(p, "Heard")
	b.everywhere(healthy, map[*cluster]view{b.east: westGone.with("solo", "west/10.65.9.2 -> IP")})

	// The old one is back from its grave, and is another one in its turn.
	b.ways[p].Reconnect()
	rotate(b)
	b.judged(p, "AnotherCluster")
	b.everywhere(healthy, map[*cluster]view{b.east: westGone.with("solo", "west/10.65.9.2 -> IP")})
	b.annotate(b.west, controller.AnnotationConfirm, b.uid(b.west))
	b.judged(p, "Heard")
	b.expect(healthy)
}
