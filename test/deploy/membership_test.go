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

// profileCRD has the resource of ClusterProfiles, without its schema.
const profileCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterprofiles.multicluster.x-k8s.io
  annotations: {api-approved.kubernetes.io: "https://example.org/test"}
spec:
  group: multicluster.x-k8s.io
  names: {kind: ClusterProfile, plural: clusterprofiles}
  scope: Namespaced
  versions: [{name: v1alpha1, served: true, storage: true,
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// profiles are ClusterProfiles of two namespaces. The id of the second one is its label.
const profiles = `
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ClusterProfile
metadata: {name: profile, namespace: fleet, labels: {clusterset-dns.github.io/cluster: ""}}
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ClusterProfile
metadata: {name: spoke-7, namespace: other, labels: {env: prod, example.org/id: labeled}}
`

// TestMembersFromInventories: with the rights of the chart, clusters join with their objects of an API server, and stay while
// a right or a resource is missing. The tests of controller/member have what else a source does.
func TestMembersFromInventories(t *testing.T) {
	cluster := controlplanetest.Start(t, controlplane.Options{Name: "hub", Zones: []string{}})[0]
	sources := []string{"clusterprofile:fleet", "clusterprofile:other:env=prod:example.org/id"}
	apply(t, cluster, "{apiVersion: v1, kind: Namespace, metadata: {name: fleet}}\n---\n"+
		"{apiVersion: v1, kind: Namespace, metadata: {name: other}}")
	apply(t, cluster, template(t, "--set", "clusterId=hub,namespace.create=true", "--set", "membersFrom={"+strings.Join(sources, ",")+"}"))
	controllerOf(t, cluster, "--members-from", sources[0], "--members-from", sources[1])
	members := func(want ...string) {
		t.Helper()
		eventually(t, "members "+strings.Join(want, " "), func(ctx context.Context) error {
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
			if !slices.Equal(got, want) {
				return fmt.Errorf("members are %v", got)
			}
			return nil
		})
	}
	unreadable := func(why string) {
		t.Helper()
		eventually(t, "an Event with "+why, func(ctx context.Context) error {
			events, err := cluster.Client().CoreV1().Events(metav1.NamespaceAll).List(ctx,
				metav1.ListOptions{FieldSelector: "reason=" + memberstate.EventMemberSourceUnreadable})
			if err == nil && !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
				return strings.Contains(e.Message, "--members-from="+sources[0]+",") && strings.Contains(e.Message, why)
			}) {
				err = fmt.Errorf("there is none among %d", len(events.Items))
			}
			return err
		})
	}
	unreadable("could not find")
	eventually(t, "the resources are served", func(ctx context.Context) error {
		return clusterset.Apply(ctx, cluster, []byte(profileCRD+"---\n"+profiles))
	})
	members("labeled", "profile")

	// Without the right to list the ClusterProfiles of fleet, its member stays although the object is gone.
	ctl(t, cluster, "", "delete", "-n", "fleet", "rolebinding", "clusterset-members-0")
	unreadable("forbidden")
	ctl(t, cluster, "", "delete", "-n", "fleet", "clusterprofiles.multicluster.x-k8s.io", "profile")
	ctl(t, cluster, "", "delete", "-n", "other", "clusterprofiles.multicluster.x-k8s.io", "spoke-7")
	members("profile")
}
