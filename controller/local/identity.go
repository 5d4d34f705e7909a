// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
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

// askWithin bounds each request with which the controller begins: its answer may be lost, and the heartbeat waits.
const askWithin = 5 * time.Second

// Await calls ask every second until an answer is final, and logs the first one that is not. It returns the error of the final
// answer, or that of the context if it ended.
func Await(ctx context.Context, what string, ask func(context.Context) (final bool, err error)) (err error) {
	told := false
	_ = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (final bool, _ error) {
		ctx, cancel := context.WithTimeout(ctx, askWithin)
		defer cancel()
		if final, err = ask(ctx); !final && !told {
			klog.FromContext(ctx).Info("Waiting for the API server", "for", what, "err", err)
			told = true
		}
		return final, nil
	})
	return cmp.Or(ctx.Err(), err)
}

// ID returns the cluster id in the ClusterProperty of the local cluster. It retries unless the property is missing or may not
// be read.
func ID(ctx context.Context, client dynamic.Interface) (id string, err error) {
	err = Await(ctx, "the id of this cluster", func(ctx context.Context) (bool, error) {
		all, err := listProperties(ctx, client)
		if id = all[scope.ClusterIDProperty]; err == nil && id == "" {
			err = apierrors.NewNotFound(clusterProperties, scope.ClusterIDProperty)
		}
		return err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err), err
	})
	if err != nil {
		return "", fmt.Errorf("the id of this cluster is unknown: give it with --cluster-id, or create the ClusterProperty %s: %w",
			scope.ClusterIDProperty, err)
	}
	if err := member.ValidateID(id); err != nil {
		return "", fmt.Errorf("ClusterProperty %s: %w", scope.ClusterIDProperty, err)
	}
	return id, nil
}

// defaultServiceCIDR is the ServiceCIDR made from the flags of the API server: one CIDR for each family, the preferred family
// first (KEP-1880).
const defaultServiceCIDR = "kubernetes"

// Services returns the ranges of the IPs of Services, at most one of each family, the preferred family first. They change only
// when an API server restarts. It retries until the API server answers or the context ends.
func Services(ctx context.Context, client kubernetes.Interface) (ranges []netip.Prefix, err error) {
	err = Await(ctx, "the IP families of Services", func(ctx context.Context) (bool, error) {
		serviceCIDR, err := client.NetworkingV1().ServiceCIDRs().Get(ctx, defaultServiceCIDR, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		ranges = nil
		for _, text := range serviceCIDR.Spec.CIDRs {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				return false, err
			}
			ranges = append(ranges, prefix.Masked())
		}
		return len(ranges) > 0, nil
	})
	return ranges, err
}
