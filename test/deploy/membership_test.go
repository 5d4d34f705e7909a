// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
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

// TestMembersFromInventories: with the rights of the chart, clusters join and leave with their objects of an API server,
// and stay while a right or a resource is missing. No object takes the id of a member that a Secret joined.
func TestMembersFromInventories(t *testing.T) {
	cluster := controlplanetest.Start(t, controlplane.Options{Name: "hub", Zones: []string{}})[0]
	sources := []string{"clusterprofile:fleet", "clusterprofile:other:env=prod:example.org/id"}
	apply(t, cluster, `{apiVersion: v1, kind: Namespace, metadata: {name: fleet}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: other}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: `+system+`}}`)
	apply(t, cluster, template(t, "--set", "clusterId=hub", "--set", "membersFrom={"+strings.Join(sources, ",")+"}"))
	var flags []string
	for _, source := range sources {
		flags = append(flags, "--members-from", source)
	}
	controllerOf(t, cluster, system, flags...)

	members := func(want ...string) {
		t.Helper()
		eventually(t, "members "+strings.Join(want, " "), func(ctx context.Context) error {
			leases, err := cluster.Client().CoordinationV1().Leases(system).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			var got []string
			for i := range leases.Items {
				lease := &leases.Items[i]
				if id, is := strings.CutPrefix(lease.Name, memberstate.LeasePrefix); is {
					source, _, _ := memberstate.ParseOrigin(lease.Annotations[memberstate.OriginAnnotation])
					kind, _, _ := strings.Cut(source, ":")
					got = append(got, id+"="+kind)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Errorf("members are %v", got)
			}
			return nil
		})
	}
	event := func(reason, message string) {
		t.Helper()
		eventually(t, "an Event "+reason+" with "+message, func(ctx context.Context) error {
			events, err := cluster.Client().CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range events.Items {
				if e := &events.Items[i]; e.Reason == reason && regexp.MustCompile(message).MatchString(e.Message) {
					return nil
				}
			}
			return errors.New("there is none")
		})
	}
	unreadable := func(source, why string) {
		t.Helper()
		event(memberstate.EventMemberSourceUnreadable, "--members-from="+source+",.*"+why)
	}
	unreadable("clusterprofile:fleet", "could not find")
	apply(t, cluster, profileCRD)
	client, credentials := kubectl(t), kubeconfig(t, cluster)
	eventually(t, "the resources are served", func(ctx context.Context) error {
		_, err := try(ctx, t, profiles, client, "--kubeconfig", credentials, "apply", "--server-side", "-f", "-")
		return err
	})
	members("labeled=clusterprofile", "profile=clusterprofile")

	// A Secret takes the id of an older object, which has an Event.
	const secret = `{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: ` + system + `,
labels: {clusterset-dns.github.io/cluster: %s}}, stringData: {kubeconfig: none}}`
	apply(t, cluster, fmt.Sprintf(secret, "member-labeled", "labeled"))
	members("labeled=-", "profile=clusterprofile")
	event(memberstate.EventMemberCredentialInvalid, "labeled is already that of Secret "+system+"/member-labeled")

	// Without the right to list the ClusterProfiles of fleet, its member stays although the object is gone.
	remove := func(args ...string) {
		t.Helper()
		run(t, "", kubectl(t), append([]string{"--kubeconfig", kubeconfig(t, cluster), "delete"}, args...)...)
	}
	remove("-n", "fleet", "rolebinding", "clusterset-members-0")
	unreadable("clusterprofile:fleet", "forbidden")
	remove("-n", "fleet", "clusterprofiles.multicluster.x-k8s.io", "profile")
	remove("-n", "other", "clusterprofiles.multicluster.x-k8s.io", "spoke-7")
	remove("-n", system, "secret", "member-labeled")
	members("profile=clusterprofile")
}
