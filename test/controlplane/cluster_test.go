// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

func TestStartAll(t *testing.T) {
	clusters, err := controlplane.StartAll(t.Context(), controlplane.Options{Name: "east"}, controlplane.Options{Name: "west"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := controlplane.StopAll(clusters...); err != nil {
			t.Error(err)
		}
	}()
	for _, cluster := range clusters {
		nodes, err := cluster.Client().CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(nodes.Items) != 2 || nodes.Items[0].Labels[corev1.LabelTopologyZone] != cluster.Name()+"-a" {
			t.Errorf("cluster %s has nodes %v", cluster.Name(), nodes.Items)
		}
	}
}
