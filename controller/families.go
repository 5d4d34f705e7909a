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

// serviceIPFamilies returns the families that a Service of this cluster can
// have, the cluster's preferred one first. They change only when an API server
// is started anew. It waits for an API server that is away.
func serviceIPFamilies(ctx context.Context, client kubernetes.Interface, namespace string) ([]corev1.IPFamily, error) {
	var families []corev1.IPFamily
	told := false
	err := wait.ExponentialBackoffWithContext(ctx, patient, func(ctx context.Context) (_ bool, err error) {
		if families, err = askServiceCIDR(ctx, client); apierrors.IsNotFound(err) {
			families, err = apply.AskIPFamilies(ctx, client, namespace)
		}
		if err != nil && !told {
			klog.FromContext(ctx).Error(err, "Cannot learn the IP families of Services yet")
			told = true
		}
		return err == nil && len(families) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("IP families of Services: %w", err)
	}
	return families, nil
}

func askServiceCIDR(ctx context.Context, client kubernetes.Interface) ([]corev1.IPFamily, error) {
	serviceCIDR, err := client.NetworkingV1().ServiceCIDRs().Get(ctx, defaultServiceCIDR, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var families []corev1.IPFamily
	for _, text := range serviceCIDR.Spec.CIDRs {
		prefix, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("ServiceCIDR %s: %w", defaultServiceCIDR, err)
		case prefix.Addr().Is4():
			families = append(families, corev1.IPv4Protocol)
		default:
			families = append(families, corev1.IPv6Protocol)
		}
	}
	return families, nil
}
