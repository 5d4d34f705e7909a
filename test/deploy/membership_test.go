// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
)

// inventoryCRDs have the resources of ClusterProfiles and ManagedClusters, without their schemas.
const inventoryCRDs = `
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
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: managedclusters.cluster.open-cluster-management.io}
spec:
  group: cluster.open-cluster-management.io
  names: {kind: ManagedCluster, plural: managedclusters}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true,
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// inventory are objects of all systems, in the order of origins.
const inventory = `
apiVersion: v1
kind: Secret
type: cluster.x-k8s.io/secret
metadata: {name: capi-kubeconfig, namespace: fleet,
  labels: {cluster.x-k8s.io/cluster-name: capi, clusterset-dns.github.io/cluster: capi}}
stringData: {value: "none"}
---
apiVersion: v1
kind: Secret
metadata: {name: cluster-argo, namespace: argocd,
  labels: {argocd.argoproj.io/secret-type: cluster, clusterset-dns.github.io/cluster: argo}}
stringData: {name: argo, server: "https://127.0.0.1:1", config: '{"bearerToken": "token"}'}
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ClusterProfile
metadata: {name: profile, namespace: fleet, labels: {clusterset-dns.github.io/cluster: profile}}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: ocm, labels: {clusterset-dns.github.io/cluster: ocm}}
spec: {managedClusterClientConfigs: [{url: "https://127.0.0.1:1"}]}
---
apiVersion: v1
kind: Secret
metadata: {name: clusterset-dns, namespace: ocm,
  labels: {authentication.open-cluster-management.io/is-managed-serviceaccount: "true"}}
stringData: {token: token}
`

// TestMembersFromInventories: with the rights of the chart, clusters join and leave with their objects of an API server,
// and stay while a right or a resource is missing.
func TestMembersFromInventories(t *testing.T) {
	cluster := controlplanetest.Start(t, controlplane.Options{Name: "hub", Zones: []string{}})[0]
	folder := t.TempDir()
	sources := []string{
		"cluster-api:fleet", "argocd:argocd", "clusterprofile:fleet", "ocm", "directory:" + folder,
	}
	apply(t, cluster, `{apiVersion: v1, kind: Namespace, metadata: {name: fleet}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: argocd}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ocm}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: `+system+`}}`)
	apply(t, cluster, template(t, "--set", "clusterId=hub", "--set", "membersFrom={"+strings.Join(sources, ",")+"}"))
	program, err := programs.Build(t.Context(), "cmd/clusterset-controller")
	must(t, err)
	credential, err := clusterset.WriteCredential(t.Context(), cluster, system, "clusterset-controller")
	must(t, err)
	var flags []string
	for _, source := range sources {
		flags = append(flags, "--members-from", source)
	}
	running, err := clusterset.StartController(cluster, filepath.Join(program, "clusterset-controller"), credential, flags...)
	must(t, err)
	t.Cleanup(func() { must(t, running.Stop(context.Background(), time.Minute)) })

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
	unreadable := func(source, why string) {
		t.Helper()
		eventually(t, "an Event that "+source+" cannot be read", func(ctx context.Context) error {
			events, err := cluster.Client().CoreV1().Events(system).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			pattern := regexp.MustCompile("--members-from=" + source + ",.*" + why)
			for i := range events.Items {
				if e := &events.Items[i]; e.Reason == memberstate.EventMemberSourceUnreadable && pattern.MatchString(e.Message) {
					return nil
				}
			}
			return errors.New("there is none")
		})
	}
	unreadable("clusterprofile:fleet", "could not find")
	unreadable("ocm", "could not find")
	apply(t, cluster, inventoryCRDs)
	must(t, os.WriteFile(filepath.Join(folder, "file.kubeconfig"), []byte("none"), 0o600))
	client, credentials := kubectl(t), kubeconfig(t, cluster)
	eventually(t, "the resources are served", func(ctx context.Context) error {
		_, err := try(ctx, t, inventory, client, "--kubeconfig", credentials, "apply", "--server-side", "-f", "-")
		return err
	})
	all := []string{"argo=argocd", "capi=cluster-api", "file=directory", "ocm=ocm", "profile=clusterprofile"}
	members(all...)

	// Without the right to list Secrets of fleet, its member stays although the object is gone.
	remove := func(args ...string) {
		t.Helper()
		run(t, "", kubectl(t), append([]string{"--kubeconfig", kubeconfig(t, cluster), "delete"}, args...)...)
	}
	remove("-n", "fleet", "rolebinding", "clusterset-members-0")
	unreadable("cluster-api:fleet", "forbidden")
	remove("-n", "fleet", "secret", "capi-kubeconfig")
	remove("-n", "argocd", "secret", "cluster-argo")
	remove("-n", "fleet", "clusterprofiles.multicluster.x-k8s.io", "profile")
	remove("managedclusters.cluster.open-cluster-management.io", "ocm")
	must(t, os.Remove(filepath.Join(folder, "file.kubeconfig")))
	members("capi=cluster-api")
}
