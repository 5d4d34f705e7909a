// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

const profileCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterprofiles.multicluster.x-k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs"}
spec:
  group: multicluster.x-k8s.io
  scope: Namespaced
  names: {kind: ClusterProfile, plural: clusterprofiles}
  versions:
  - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}`

// TestMembersFromInventories: with the rights of the chart, the cluster of a ClusterProfile becomes a member.
// TestMembersOfASource and TestClusterProfiles cover other cases.
func TestMembersFromInventories(t *testing.T) {
	cluster := installed(t)
	apply(t, cluster, profileCRD)
	namespace := namespaceOf(t, cluster, "fleet-")
	source := "clusterprofile:" + namespace
	apply(t, cluster, template(t, "--show-only", "templates/membership-rights.yaml", "--set", "membersFrom={"+source+"}"))
	controllerOf(t, cluster, "--members-from", source)
	eventually(t, "a member", func(ctx context.Context) error {
		profile := fmt.Appendf(nil, "{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ClusterProfile, metadata: {name: west, namespace: %s, labels: {%s: west}}}",
			namespace, member.ClusterLabel)
		_, err := cluster.Client().CoordinationV1().Leases(system).Get(ctx, memberstate.LeasePrefix+"west", metav1.GetOptions{})
		return errors.Join(cluster.Apply(ctx, profile), err)
	})
}
