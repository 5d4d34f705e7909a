// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// A Shape is the size of a cluster set. All services have the same number of endpoints, spread evenly over the clusters
// that export them. Services with an even number are headless, the others have a cluster IP.
type Shape struct {
	// Members is the number of clusters in addition to the cluster under test.
	Members int
	// Services and Endpoints are the totals of the set. The endpoints divide evenly.
	Services, Endpoints int
	// Spread is the number of clusters that export each service, at most Members.
	Spread int
}

// perNamespace is the number of services per namespace.
const perNamespace = 50

// Part returns the number of endpoints that one cluster has of a service.
func (s Shape) Part() int { return s.Endpoints / s.Services / s.Spread }

// Slices returns the number of published slices in all clusters.
func (s Shape) Slices() int {
	return s.Services * s.Spread * ((s.Part() + PerSlice - 1) / PerSlice)
}

// Namespaces returns the namespaces of the services.
func (s Shape) Namespaces() []string {
	var all []string
	for i := 0; i < s.Services; i += perNamespace {
		all = append(all, namespaceOf(i))
	}
	return all
}

func headless(service int) bool { return service%2 == 0 }

func namespaceOf(service int) string { return fmt.Sprintf("scale-%d", service/perNamespace) }

// Name returns the name of a service in DNS.
func Name(service int) string {
	return fmt.Sprintf("svc-%d.%s.svc.clusterset.local.", service, namespaceOf(service))
}

// servicesOf returns the services that a member exports, each with the position of the member among its exporters.
func (s Shape) servicesOf(member int) (all [][2]int) {
	for service := range s.Services {
		if part := (member - service*s.Spread%s.Members + s.Members) % s.Members; part < s.Spread {
			all = append(all, [2]int{service, part})
		}
	}
	return all
}

// created is the time at which the first member exported its services. Other members follow one minute apart.
var created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// published returns the slices that a member publishes for a service. part is the member's position among the exporters.
func (s Shape) published(cluster string, number, part int) ([]*discoveryv1.EndpointSlice, error) {
	service := NewService(namespaceOf(number), fmt.Sprintf("svc-%d", number), headless(number))
	service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	if !headless(number) {
		service.Spec.ClusterIP = "10.96.0.10"
	}
	slices := Slices(service, cluster, uint32((number*s.Spread+part)*s.Part()), s.Part())
	name := types.NamespacedName{Namespace: service.Namespace, Name: service.Name}
	serviceExport := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
		Name: name.Name, Namespace: name.Namespace, CreationTimestamp: metav1.NewTime(created.Add(time.Duration(part) * time.Minute)),
	}}
	view, problems, invalid := export.FromService(export.Exporter{Cluster: cluster}, serviceExport, service, slices)
	if invalid != nil || len(problems) > 0 {
		return nil, fmt.Errorf("the export of %s by %s is not valid: %v %v", name, cluster, invalid, problems)
	}
	result := merge.Merge(merge.Observed{
		Cluster: cluster, Service: name, APIVersion: mcsv1beta1.GroupVersion.String(), ServiceExport: serviceExport, Place: placement.Here{Cluster: scope.Cluster{ID: cluster}}.Of,
	}, []merge.Contribution{{View: view}})
	return result.EndpointSlices, nil
}

// changed is the number of the first address that a change assigns. Initial addresses have lower numbers.
const changed = 1 << 23

// numberOf returns the number of the change that assigned an address, or 0 for an initial address.
func numberOf(ip netip.Addr) uint32 {
	b := ip.As4()
	if number := uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]); number >= changed {
		return number - changed
	}
	return 0
}
