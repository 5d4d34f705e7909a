// SPDX-License-Identifier: Apache-2.0

package local

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
)

// patient retries until its context ends.
var patient = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: math.MaxInt32, Cap: 10 * time.Second}

// defaultServiceCIDR is the ServiceCIDR made from the flags of the API server:
// one CIDR for each family, that of the preferred family first (KEP-1880).
const defaultServiceCIDR = "kubernetes"

// mostIPs is the largest size of a range of Service IPs that is counted.
const mostIPs = 1 << 30

// ServiceIPFamilies returns the IP families of Services, the preferred family
// first, and how many Services can have an IP. The number is 0 if the API server
// does not serve ServiceCIDRs; the families are those that probe returns then.
// Both change only when an API server restarts. It retries until the API server
// answers or the context ends.
func ServiceIPFamilies(
	ctx context.Context, client kubernetes.Interface, probe func(context.Context) ([]corev1.IPFamily, error),
) (families []corev1.IPFamily, ips int, err error) {
	told := false
	err = wait.ExponentialBackoffWithContext(ctx, patient, func(ctx context.Context) (_ bool, err error) {
		if families, ips, err = readServiceCIDR(ctx, client); apierrors.IsNotFound(err) {
			families, err = probe(ctx)
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

func readServiceCIDR(ctx context.Context, client kubernetes.Interface) (families []corev1.IPFamily, ips int, err error) {
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
