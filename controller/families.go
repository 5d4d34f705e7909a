// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
)

// patient tries for as long as its context lives.
var patient = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: math.MaxInt32, Cap: 10 * time.Second}

// defaultServiceCIDR is the ServiceCIDR that the API server's flags make, one
// CIDR for each family, the preferred family's first (KEP-1880).
const defaultServiceCIDR = "kubernetes"

// mostIPs is what a range of Services counts at most.
const mostIPs = 1 << 30

// serviceIPFamilies returns the families that a Service of this cluster can
// have, the cluster's preferred one first, and how many Services can have an IP,
// 0 if the API server does not serve ServiceCIDRs. Both change only when an API
// server is started anew. It waits for an API server that is away.
func serviceIPFamilies(ctx context.Context, client kubernetes.Interface, namespace string) (families []corev1.IPFamily, ips int, err error) {
	told := false
	err = wait.ExponentialBackoffWithContext(ctx, patient, func(ctx context.Context) (_ bool, err error) {
		if families, ips, err = askServiceCIDR(ctx, client); apierrors.IsNotFound(err) {
			families, err = apply.AskIPFamilies(ctx, client, namespace)
		}
		if err != nil && !told {
			klog.FromContext(ctx).Error(err, "Cannot learn the IP families of Services yet")
			told = true
		}
		return err == nil && len(families) > 0, nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("IP families of Services: %w", err)
	}
	return families, ips, nil
}

func askServiceCIDR(ctx context.Context, client kubernetes.Interface) (families []corev1.IPFamily, ips int, err error) {
	serviceCIDR, err := client.NetworkingV1().ServiceCIDRs().Get(ctx, defaultServiceCIDR, metav1.GetOptions{})
	if err != nil {
		return nil, 0, err
	}
	ips = mostIPs
	for _, text := range serviceCIDR.Spec.CIDRs {
		prefix, err := netip.ParsePrefix(text)
		if err == nil {
			ips = min(ips, 1<<min(30, prefix.Addr().BitLen()-prefix.Bits()))
		}
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("ServiceCIDR %s: %w", defaultServiceCIDR, err)
		case prefix.Addr().Is4():
			families = append(families, corev1.IPv4Protocol)
		default:
			families = append(families, corev1.IPv6Protocol)
		}
	}
	return families, ips, nil
}
