// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Clean removes the objects of one service after an administrator removed the MCS API: without ServiceExports the local
// cluster's slices and the Service with node ports, without ServiceImports the copies of members' slices and the derived
// Service. The garbage collector does not, because it does not know kinds that are no longer served. All objects must carry
// this controller's label.
func (a *Applier) Clean(ctx context.Context, cluster string, services []*corev1.Service,
	slices []*discoveryv1.EndpointSlice, exports, imports bool,
) error {
	var errs []error
	for _, slice := range slices {
		own := slice.Labels[export.LabelSourceCluster] == cluster
		if own && exports || !own && imports {
			errs = append(errs, remove(ctx, a.Core.DiscoveryV1().EndpointSlices(slice.Namespace), slice))
		}
	}
	for _, service := range services {
		if own := export.IsExposed(service); own && exports || !own && imports {
			errs = append(errs, remove(ctx, a.Core.CoreV1().Services(service.Namespace), service))
		}
	}
	return errors.Join(errs...)
}
