// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

// joinOver is join over a way that can be cut.
func (c *cluster) joinOver(t testing.TB, other *cluster) interface {
	CutOff(link.Direction)
	Reconnect()
	Received() int64
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

// TestPartition: a change at a member is not seen while what the member sends
// is held back, removes nothing, and arrives once the way is whole again.
func TestPartition(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	west.start(t)
	way := east.joinOver(t, west)
	east.start(t)
	demo := namespace(t, east, west)
	web, db := key(demo, "web"), key(demo, "db")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web")+headless("db", "10.65.0.11")+serviceExport("db"))
	before := "ClusterSetIP of west Ready [west/10.65.0.10]"
	expect(t, web, before, east)
	expect(t, db, "Headless of west Ready [west/10.65.0.11]", east)
	for _, cut := range []link.Direction{link.FromServer, link.ToServer, link.Both} {
		way.CutOff(cut)
		after := fmt.Sprintf("ClusterSetIP of west Ready [west/10.65.1.%d]", cut)
		west.create(t, demo, endpoints("web", fmt.Sprintf("10.65.1.%d", cut)))
		expect(t, web, after, west)
		// An export of east's own takes longer than a change that arrives.
		own := fmt.Sprintf("own-%d", cut)
		east.create(t, demo, service(own, "10.64.0.10")+serviceExport(own))
		expect(t, key(demo, own), "ClusterSetIP of east Ready [east/10.64.0.10]", east)
		if cut != link.ToServer { // what the server sends over an open watch arrives
			got, err := east.imported(t.Context(), web)
			must(t, err)
			if got != before {
				t.Errorf("while the way is cut (%d), east has %s, want %s", cut, got, before)
			}
		}
		way.Reset() // what was on its way is lost
		way.Reconnect()
		expect(t, web, after, east)
		expect(t, db, "Headless of west Ready [west/10.65.0.11]", east)
		before = after
	}
}

// TestOnlyWhatIsExportedIsRead: the API server of a member does not even send
// the slices that the member does not export.
func TestOnlyWhatIsExportedIsRead(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	west.start(t)
	demo := namespace(t, east, west)
	way := east.joinOver(t, west)
	east.start(t)
	eventually(t, "connected", east.metric(t, "clusterset_controller_member_connected", map[string]string{"member": "west"}, 1))
	before := way.Received()
	var all string
	for i := range 20 {
		var addresses []string
		for j := range 100 {
			addresses = append(addresses, fmt.Sprintf("10.65.%d.%d", i+10, j+1))
		}
		all += service(fmt.Sprintf("quiet-%d", i), addresses...)
	}
	west.create(t, demo, all+service("web", "10.65.0.10")+serviceExport("web"))
	expect(t, key(demo, "web"), "ClusterSetIP of west Ready [west/10.65.0.10]", east)
	sent, unexported := way.Received()-before, 0
	list, err := west.DiscoveryV1().EndpointSlices(demo).List(t.Context(), metav1.ListOptions{LabelSelector: "!" + export.LabelSourceCluster})
	must(t, err)
	for i := range list.Items {
		unexported += list.Items[i].Size()
	}
	if len(list.Items) != 21 || int(sent) > unexported/2 {
		t.Errorf("west sent %d bytes; its %d slices that are not exported have %d", sent, len(list.Items), unexported)
	}
}
