// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

// joinOver is join over a way that can be cut.
func (c *cluster) joinOver(t testing.TB, other *cluster) interface {
	CutOff(link.Direction)
	Reconnect()
	Reset()
} {
	t.Helper()
	remote, err := other.Remote(c.Name())
	must(t, err)
	t.Cleanup(remote.Reconnect)
	kubeconfig, err := remote.ServiceAccountKubeconfig(t.Context(), system, memberName)
	must(t, err)
	c.putSecret(t, "member-"+other.Name(), other.Name(), kubeconfig)
	return remote
}

// TestRestartWhileAMemberIsAway: what the member contributed comes back from
// the copies in the own cluster, and only leaving removes it.
func TestRestartWhileAMemberIsAway(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	stopWest := west.start(t)
	way := east.joinOver(t, west)
	stop := east.start(t)
	demo := namespace(t, east, west)
	web, db := key(demo, "web"), key(demo, "db")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web")+headless("db", "10.65.0.11")+serviceExport("db"))
	east.create(t, demo, service("web", "10.64.0.10")+serviceExport("web"))
	const both = "ClusterSetIP of east,west Ready [east/10.64.0.10 west/10.65.0.10]"
	expect(t, web, both, east)
	expect(t, db, "Headless of west Ready [west/10.65.0.11]", east)

	stop()
	way.CutOff(link.Both)
	way.Reset()
	stop = east.start(t)
	eventually(t, "member not synced", east.metric(t, "clusterset_controller_member_synced", map[string]string{"cluster": "west"}, 0))
	// A change here is merged with what the silent member contributed.
	east.create(t, demo, endpoints("web", "10.64.0.12"))
	expect(t, web, "ClusterSetIP of east,west Ready [east/10.64.0.12 west/10.65.0.10]", east)
	expect(t, db, "Headless of west Ready [west/10.65.0.11]", east)

	// A credential that turns bad removes nothing either.
	bad := east.putSecret(t, "member-west", "west", []byte("{"))
	eventually(t, "event", east.event(bad, controller.EventMemberRefused))
	east.create(t, demo, endpoints("web", "10.64.0.13"))
	expect(t, web, "ClusterSetIP of east,west Ready [east/10.64.0.13 west/10.65.0.10]", east)
	stop()
	east.start(t)
	eventually(t, "leading", east.metric(t, "clusterset_controller_leading", nil, 1))
	east.create(t, demo, endpoints("web", "10.64.0.14"))
	expect(t, web, "ClusterSetIP of east,west Ready [east/10.64.0.14 west/10.65.0.10]", east)
	expect(t, db, "Headless of west Ready [west/10.65.0.11]", east)

	// A change made meanwhile arrives with a good credential.
	west.create(t, demo, endpoints("web", "10.65.0.20"))
	west.unexport(t, db)
	expect(t, db, "none", west)
	way.Reconnect()
	east.join(t, west)
	expect(t, web, "ClusterSetIP of east,west Ready [east/10.64.0.14 west/10.65.0.20]", east)
	expect(t, db, "none", east)

	// A controller that stops is not an un-export.
	stopWest()
	east.create(t, demo, endpoints("web", "10.64.0.15"))
	expect(t, web, "ClusterSetIP of east,west Ready [east/10.64.0.15 west/10.65.0.20]", east)

	east.leave(t, west)
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.15]", east)
}

// TestStaticMember: a flag makes a member, and a start without it is leaving.
func TestStaticMember(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	west.start(t)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	path := filepath.Join(t.TempDir(), "west.kubeconfig")
	must(t, os.WriteFile(path, west.kubeconfigOf(t, system, memberName), 0o600))

	east.options.Members = []member.Static{{Cluster: "west", Kubeconfig: path}, {Cluster: "north", Kubeconfig: path + ".none"}}
	stop := east.start(t)
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east)
	must(t, east.metric(t, "clusterset_controller_member_credentials_refused", nil, 1)(t.Context()))
	stop()
	// An unusable credential is not leaving.
	must(t, os.WriteFile(path, []byte("{"), 0o600))
	stop = east.start(t)
	eventually(t, "leading", east.metric(t, "clusterset_controller_leading", nil, 1))
	east.create(t, demo, service("web", "10.64.0.10")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of east,west Ready [east/10.64.0.10 west/10.65.0.10]", east)
	stop()
	east.options.Members = nil
	east.start(t)
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.10]", east)
}

// TestPartition: what changes while the way to a member is cut arrives when it
// is whole again.
func TestPartition(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	west.start(t)
	way := east.joinOver(t, west)
	east.start(t)
	demo := namespace(t, east, west)
	web, db := key(demo, "web"), key(demo, "db")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web")+headless("db", "10.65.0.11")+serviceExport("db"))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east)
	expect(t, db, "Headless of west Ready [west/10.65.0.11]", east)
	for _, cut := range []link.Direction{link.FromServer, link.ToServer, link.Both} {
		way.CutOff(cut)
		address := fmt.Sprintf("10.65.1.%d", cut)
		west.create(t, demo, endpoints("web", address))
		expect(t, web, "ClusterSetIP of west Ready [west/"+address+"]", west)
		way.Reset() // what was on its way is lost
		way.Reconnect()
		expect(t, web, "ClusterSetIP of west Ready [west/"+address+"]", east)
		expect(t, db, "Headless of west Ready [west/10.65.0.11]", east)
	}
}

// TestMemberThatHangsIsTold: a way that swallows everything fails no request,
// and is told of because no heartbeat arrives.
func TestMemberThatHangsIsTold(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	west.start(t)
	way := east.joinOver(t, west)
	east.start(t)
	connected := func(want float64) func(context.Context) error {
		return east.metric(t, "clusterset_controller_member_connected", map[string]string{"cluster": "west"}, want)
	}
	eventually(t, "connected", connected(1))
	secret, err := east.CoreV1().Secrets(system).Get(t.Context(), "member-west", metav1.GetOptions{})
	must(t, err)
	way.CutOff(link.FromServer)
	eventually(t, "silence", east.event(secret, controller.EventMemberUnreachable))
	eventually(t, "disconnected", connected(0))
	way.Reconnect()
	eventually(t, "recovery", east.event(secret, controller.EventMemberReachable))
	eventually(t, "connected again", connected(1))
}

// TestOnlyWhatIsExportedIsRead: what a member does not export is not even sent.
func TestOnlyWhatIsExportedIsRead(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	west.start(t)
	east.join(t, west)
	east.start(t)
	demo := namespace(t, east, west)
	var all string
	for i := range 20 {
		all += service(fmt.Sprintf("quiet-%d", i), fmt.Sprintf("10.65.3.%d", i+1))
	}
	west.create(t, demo, all+service("web", "10.65.0.10")+serviceExport("web"))
	expect(t, key(demo, "web"), "ClusterSetIP of west Ready [west/10.65.0.10]", east)
	published := 0
	eventually(t, "slices at west", func(ctx context.Context) error {
		list, err := west.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{LabelSelector: export.LabelSourceCluster + "=west"})
		published = len(list.Items)
		return err
	})
	eventually(t, "slices read", east.metric(t, "clusterset_controller_member_endpointslices", map[string]string{"cluster": "west"}, float64(published)))
}

// TestThreeClusters: the same import everywhere, whoever leaves first.
func TestThreeClusters(t *testing.T) {
	east, west := bed(t)
	north, _ := more(t, "north", "south")
	all := []*cluster{east, north, west}
	for _, c := range all {
		for _, other := range all {
			if c != other {
				c.join(t, other)
			}
		}
		c.start(t)
	}
	demo := namespace(t, all...)
	web := key(demo, "web")
	for i, c := range all {
		c.create(t, demo, service("web", fmt.Sprintf("10.7%d.0.1", i))+serviceExport("web"))
	}
	expect(t, web, "ClusterSetIP of east,north,west Ready [east/10.70.0.1 north/10.71.0.1 west/10.72.0.1]", all...)
	east.unexport(t, web)
	expect(t, web, "ClusterSetIP of north,west Ready [north/10.71.0.1 west/10.72.0.1]", all...)
	for _, c := range []*cluster{north, west} {
		c.leave(t, east)
		east.leave(t, c)
	}
	expect(t, web, "none", east)
	expect(t, web, "ClusterSetIP of north,west Ready [north/10.71.0.1 west/10.72.0.1]", north, west)
	for _, c := range []*cluster{north, west} {
		c.join(t, east)
		east.join(t, c)
	}
	expect(t, web, "ClusterSetIP of north,west Ready [north/10.71.0.1 west/10.72.0.1]", all...)
	north.unexport(t, web)
	west.unexport(t, web)
	expect(t, web, "none", all...)
}

// TestRotation changes the credential of a member while it is in use.
func TestRotation(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	west.start(t)
	east.join(t, west)
	east.start(t)
	demo := namespace(t, east, west)
	web := key(demo, "web")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east)
	before, err := east.serviceImport(t.Context(), web)
	must(t, err)

	east.join(t, west) // with another token
	eventually(t, "connected", east.metric(t, "clusterset_controller_member_connected", map[string]string{"cluster": "west"}, 1))
	west.create(t, demo, endpoints("web", "10.65.0.11"))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.11]", east)
	after, err := east.serviceImport(t.Context(), web)
	must(t, err)
	if before.UID != after.UID {
		t.Error("the import was made anew")
	}

	// By a second Secret: the older one is used until it goes.
	second := east.putSecret(t, "second", "west", west.kubeconfigOf(t, system, memberName))
	eventually(t, "event", east.event(second, controller.EventMemberRefused))
	east.leave(t, west)
	west.create(t, demo, endpoints("web", "10.65.0.12"))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.12]", east)
}

func TestHeartbeatIsHeard(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	west.start(t)
	east.join(t, west)
	east.start(t)
	kubeSystem, err := west.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	must(t, err)
	read := func(ctx context.Context) (*coordinationv1.Lease, error) {
		return west.CoordinationV1().Leases(system).Get(ctx, member.HeartbeatLease, metav1.GetOptions{})
	}
	var first *coordinationv1.Lease
	eventually(t, "heartbeat", func(ctx context.Context) (err error) {
		if first, err = read(ctx); err != nil {
			return err
		}
		if got := first.Annotations[member.HeartbeatUIDAnnotation]; got != string(kubeSystem.UID) {
			return fmt.Errorf("the UID is %q, want %q", got, kubeSystem.UID)
		}
		if *first.Spec.HolderIdentity != "west" || *first.Spec.LeaseDurationSeconds != 15 {
			return fmt.Errorf("the Lease is %v", first.Spec)
		}
		return nil
	})
	// One renewal comes with the start, the next one after the interval.
	for range 2 {
		eventually(t, "next heartbeat", func(ctx context.Context) error {
			next, err := read(ctx)
			if err == nil && next.ResourceVersion == first.ResourceVersion {
				err = errors.New("not renewed")
			}
			if err == nil {
				first = next
			}
			return err
		})
	}
	eventually(t, "heartbeat heard", func(context.Context) error {
		age, err := east.gather("clusterset_controller_member_heartbeat_age_seconds", map[string]string{"cluster": "west"})
		if err != nil {
			return err
		}
		if age == nil || age.GetGauge().GetValue() > (2*time.Second).Seconds() {
			return fmt.Errorf("age %v", age)
		}
		return nil
	})
}
