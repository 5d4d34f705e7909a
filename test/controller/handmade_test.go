// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// handMade is what the MCS API's demo has a person write: an import, and a
// slice that only names it.
func handMade(name, annotations string) string {
	return fmt.Sprintf(`
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: %[1]s, annotations: {%[2]s}}
spec: {type: ClusterSetIP, ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: %[1]s-by-hand
  labels: {multicluster.kubernetes.io/service-name: %[1]s}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.70.0.1]}]
`, name, annotations)
}

func TestHandMadeImports(t *testing.T) {
	t.Parallel()
	east, _ := bed(t)
	stop := east.start(t)
	demo := namespace(t, east)
	asked, not := key(demo, "asked"), key(demo, "not")
	east.create(t, demo, handMade("not", ""))
	east.create(t, demo, handMade("asked", export.AnnotationServe+`: "true"`))
	ips := east.ips(t, asked)
	east.hasIPs(t, asked, ips)
	eventually(t, "slice behind the derived Service", func(ctx context.Context) error {
		slice, err := east.DiscoveryV1().EndpointSlices(demo).Get(ctx, "asked-by-hand", metav1.GetOptions{})
		if err == nil && slice.Labels[export.LabelKubernetesService] != export.DerivedServiceName(asked) {
			err = fmt.Errorf("labels %v", slice.Labels)
		}
		return err
	})
	// The one that did not ask was looked at before, and is as it was.
	alone, err := east.serviceImport(t.Context(), not)
	must(t, err)
	if len(alone.Spec.IPs) > 0 || alone.Generation != 1 || len(alone.Status.Conditions) > 0 {
		t.Errorf("the import that did not ask is %v", alone)
	}

	// The derived Service comes back with its IP, and the flag asks for all.
	must(t, east.CoreV1().Services(demo).Delete(t.Context(), export.DerivedServiceName(asked), metav1.DeleteOptions{}))
	east.hasIPs(t, asked, ips)
	stop()
	east.options.HandMadeImports = true
	stop = east.start(t)
	east.hasIPs(t, not, east.ips(t, not))
	quiet(t, east)

	// One that no longer asks gives back what it got.
	stop()
	east.options.HandMadeImports = false
	east.start(t)
	eventually(t, "not served any more", func(ctx context.Context) error {
		after, err := east.serviceImport(ctx, not)
		if err != nil {
			return err
		}
		ready := meta.FindStatusCondition(after.Status.Conditions, "Ready")
		if len(after.Spec.IPs) > 0 || len(after.Annotations) > 0 || ready == nil || ready.Reason != "NotServed" {
			return fmt.Errorf("the import is %v", after)
		}
		slice, err := east.DiscoveryV1().EndpointSlices(demo).Get(ctx, "not-by-hand", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if label, found := slice.Labels[export.LabelKubernetesService]; found {
			return fmt.Errorf("the slice has the label of %s", label)
		}
		_, err = east.CoreV1().Services(demo).Get(ctx, export.DerivedServiceName(not), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the derived Service is there, or: %w", err)
	})
	quiet(t, east)

	// It is the person's to delete; what was made for it goes with it.
	must(t, east.mcs.MulticlusterV1beta1().ServiceImports(demo).Delete(t.Context(), "asked", metav1.DeleteOptions{}))
	eventually(t, "derived Service gone", func(ctx context.Context) error {
		_, err := east.CoreV1().Services(demo).Get(ctx, export.DerivedServiceName(asked), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.New("still there")
	})
	if _, err := east.DiscoveryV1().EndpointSlices(demo).Get(t.Context(), "asked-by-hand", metav1.GetOptions{}); err != nil {
		t.Errorf("the person's slice: %v", err)
	}
}
