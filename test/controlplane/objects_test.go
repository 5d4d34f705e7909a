// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

func exports(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: version, Resource: "serviceexports"}
}

func newExport(name string) *unstructured.Unstructured {
	export := &unstructured.Unstructured{}
	export.SetAPIVersion("multicluster.x-k8s.io/v1beta1")
	export.SetKind("ServiceExport")
	export.SetName(name)
	return export
}

// endpointConditions says of each endpoint of a Service what its conditions are, in the order of the pods' names.
func endpointConditions(ctx context.Context, cluster *controlplane.Cluster, namespace, service string) (string, error) {
	list, err := cluster.Client().DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		return "", err
	}
	var texts []string
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			is := func(condition *bool) bool { return condition != nil && *condition }
			texts = append(texts, fmt.Sprintf("%s: ready=%t serving=%t terminating=%t", endpoint.TargetRef.Name,
				is(endpoint.Conditions.Ready), is(endpoint.Conditions.Serving), is(endpoint.Conditions.Terminating)))
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, ", "), nil
}
