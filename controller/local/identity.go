// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// clusterProperties are the ClusterProperties, and propertyVersions their versions in the order in which they are tried.
var (
	clusterProperties = schema.GroupResource{Group: "about.k8s.io", Resource: "clusterproperties"}
	propertyVersions  = []string{"v1beta1", "v1alpha1"}
)

// ID returns the cluster id that the ClusterProperty of the local cluster has. It retries only while the API server is
// unavailable.
func ID(ctx context.Context, client dynamic.Interface) (string, error) {
	var id string
	var told bool
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		all, err := listProperties(ctx, client)
		var status apierrors.APIStatus
		if id = all[scope.ClusterIDProperty]; err == nil && id == "" {
			err = apierrors.NewNotFound(clusterProperties, scope.ClusterIDProperty)
		}
		switch {
		case err == nil:
			return true, nil
		case errors.As(err, &status) && !apierrors.IsServerTimeout(err) && !apierrors.IsTooManyRequests(err) &&
			!apierrors.IsServiceUnavailable(err) && !apierrors.IsInternalError(err):
			return false, fmt.Errorf("the id of this cluster is unknown: give it with --cluster-id, "+
				"or create the ClusterProperty %s: %w", scope.ClusterIDProperty, err)
		default:
			if !told {
				klog.FromContext(ctx).Info("Waiting for the API server to learn the id of this cluster", "err", err)
				told = true
			}
			return false, nil
		}
	})
	if err != nil {
		return "", err
	}
	if err := member.ValidateID(id); err != nil {
		return "", fmt.Errorf("ClusterProperty %s: %w", scope.ClusterIDProperty, err)
	}
	return id, nil
}

// defaultServiceCIDR is the ServiceCIDR made from the flags of the API server: one CIDR for each family, that of the
// preferred family first (KEP-1880).
const defaultServiceCIDR = "kubernetes"

// Services returns the ranges of the IPs of Services, at most one of each family, that of the preferred family first. They
// change only when an API server restarts. It retries until the API server answers or the context ends.
func Services(ctx context.Context, client kubernetes.Interface) (ranges []netip.Prefix, err error) {
	told := false
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (_ bool, err error) {
		if ranges, err = readServiceCIDR(ctx, client); err != nil && !told {
			klog.FromContext(ctx).Error(err, "Cannot learn the IP families of Services yet")
			told = true
		}
		return err == nil && len(ranges) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("IP families of Services: %w", err)
	}
	return ranges, nil
}

func readServiceCIDR(ctx context.Context, client kubernetes.Interface) (ranges []netip.Prefix, err error) {
	serviceCIDR, err := client.NetworkingV1().ServiceCIDRs().Get(ctx, defaultServiceCIDR, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	for _, text := range serviceCIDR.Spec.CIDRs {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("ServiceCIDR %s: %w", defaultServiceCIDR, err)
		}
		ranges = append(ranges, prefix.Masked())
	}
	return ranges, nil
}
