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
