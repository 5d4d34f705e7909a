// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"net/netip"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

func TestEveryServiceIsExportedByAsManyClusters(t *testing.T) {
	shape := Shape{Members: 7, Services: 13, Spread: 3, Endpoints: 13 * 3 * 2}
	exporters := map[int]map[int]bool{}
	for m := range shape.Members {
		for _, each := range shape.servicesOf(m) {
			if exporters[each[0]] == nil {
				exporters[each[0]] = map[int]bool{}
			}
			exporters[each[0]][each[1]] = true
		}
	}
	for service := range shape.Services {
		if len(exporters[service]) != shape.Spread {
			t.Errorf("service %d is exported as parts %v, want %d", service, exporters[service], shape.Spread)
		}
	}
	if got := shape.Slices(); got != 39 {
		t.Errorf("%d slices, want 39", got)
	}
}

// TestAReaderSeesAMember reads a member as the controller does.
func TestAReaderSeesAMember(t *testing.T) {
	shape := Shape{Members: 3, Services: 4, Spread: 2, Endpoints: 4 * 2 * 150}
	f, err := Start(t.Context(), shape)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := f.Export(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	m := f.Members[0]
	client := reader(t, f, m)
	selector := metav1.ListOptions{LabelSelector: export.LabelSourceCluster + "=" + m.ID}
	list, err := client.DiscoveryV1().EndpointSlices("").List(t.Context(), selector)
	if err != nil {
		t.Fatal(err)
	}
	byService := map[types.NamespacedName][]*discoveryv1.EndpointSlice{}
	for i := range list.Items {
		name := types.NamespacedName{
			Namespace: list.Items[i].Namespace, Name: list.Items[i].Labels[export.LabelService],
		}
		byService[name] = append(byService[name], &list.Items[i])
	}
	for name, slices := range byService {
		view, problems := export.FromSlices(export.Source{Cluster: m.ID}, name, slices, nil)
		if view == nil || len(problems) > 0 || len(view.Slices) != 2 {
			t.Errorf("%s: view %v, problems %v", name, view, problems)
		}
	}
	if len(byService) != 3 {
		t.Errorf("the member exports %d services, want 3", len(byService))
	}

	selector.ResourceVersion = list.ResourceVersion
	events, err := client.DiscoveryV1().EndpointSlices("").Watch(t.Context(), selector)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	changes, err := f.ChangeEach(t.Context())
	if err != nil || len(changes) != shape.Members {
		t.Fatalf("changes %v: %v", changes, err)
	}
	event := <-events.ResultChan()
	slice, ok := event.Object.(*discoveryv1.EndpointSlice)
	if !ok {
		t.Fatalf("got event %v", event)
	}
	ip, err := netip.ParseAddr(slice.Endpoints[0].Addresses[0])
	if answers := changes[0].Answers(ip); err != nil || !answers {
		t.Errorf("address %s is not that of the first change: %v", ip, err)
	}
	if changes[0].Answers(address(7)) {
		t.Error("an address of the beginning answers a change")
	}
}

func reader(t *testing.T, f *Fleet, m *Member) kubernetes.Interface {
	t.Helper()
	kubeconfig, err := f.Kubeconfig(m)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
