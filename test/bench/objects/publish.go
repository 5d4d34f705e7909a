// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// Publish returns the slices that the controller of a cluster publishes for a Service, exported at the given time, with
// these slices.
func Publish(cluster string, created time.Time, service *corev1.Service,
	slices []*discoveryv1.EndpointSlice,
) ([]*discoveryv1.EndpointSlice, error) {
	name := types.NamespacedName{Namespace: service.Namespace, Name: service.Name}
	serviceExport := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
		Name: name.Name, Namespace: name.Namespace, CreationTimestamp: metav1.NewTime(created),
	}}
	view, problems, invalid := export.FromService(export.Exporter{Cluster: cluster}, serviceExport, service, slices)
	if invalid != nil || len(problems) > 0 {
		return nil, fmt.Errorf("the export of %s by %s is not valid: %v %v", name, cluster, invalid, problems)
	}
	result := merge.Merge(merge.Observed{Cluster: cluster, Service: name, ServiceExport: serviceExport},
		[]merge.Contribution{{View: view}})
	return result.EndpointSlices, nil
}
