// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// profiles are ClusterProfiles in two namespaces. A label of the second one has its cluster id.
const profiles = `
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ClusterProfile
metadata: {name: profile, namespace: fleet, labels: {clusterset-dns.github.io/cluster: ""}}
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ClusterProfile
metadata: {name: spoke-7, namespace: other, labels: {env: prod, example.org/id: labeled}}
`

// TestMembersFromInventories: with the rights of the chart, clusters join when an API server has their ClusterProfiles,
// even if the CRD is created later. TestMembersOfASource and TestUnreadableInventory cover other cases.
func TestMembersFromInventories(t *testing.T) {
	cluster := controlplanetest.Start(t, controlplane.Options{Name: "hub"})[0]
	sources := []string{"clusterprofile:fleet", "clusterprofile:other:env=prod:example.org/id"}
	apply(t, cluster, "{apiVersion: v1, kind: Namespace, metadata: {name: fleet}}\n---\n"+
		"{apiVersion: v1, kind: Namespace, metadata: {name: other}}")
	apply(t, cluster, template(t, "--set", "clusterId=hub,namespace.create=true", "--set", "membersFrom={"+strings.Join(sources, ",")+"}"))
	controllerOf(t, cluster, "--members-from", sources[0], "--members-from", sources[1])
	eventually(t, "an Event of the source that is not there yet", func(ctx context.Context) error {
		events, err := cluster.Client().CoreV1().Events(metav1.NamespaceAll).List(ctx,
			metav1.ListOptions{FieldSelector: "reason=" + memberstate.EventMemberSourceUnreadable})
		if err == nil && !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return strings.Contains(e.Message, "--members-from="+sources[0]+",") && strings.Contains(e.Message, "could not find")
		}) {
			err = fmt.Errorf("there is none among %d", len(events.Items))
		}
		return err
	})
	eventually(t, "the resources are served", func(ctx context.Context) error {
		return cluster.Apply(ctx, []byte(clusterset.CRD("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile")+profiles))
	})
	eventually(t, "members", func(ctx context.Context) error {
		leases, err := cluster.Client().CoordinationV1().Leases(system).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var got []string
		for i := range leases.Items {
			if id, is := strings.CutPrefix(leases.Items[i].Name, memberstate.LeasePrefix); is {
				got = append(got, id)
			}
		}
		if !slices.Equal(got, []string{"labeled", "profile"}) {
			return fmt.Errorf("members are %v", got)
		}
		return nil
	})
}
