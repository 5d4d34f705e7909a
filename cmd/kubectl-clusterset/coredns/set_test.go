// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestEnableRefusesANamedSet in all modes: no server block that it adds has the option clusterset.
func TestEnableRefusesANamedSet(t *testing.T) {
	for _, mode := range []string{ByKubernetes, ByForward, ByMulticluster} {
		client := install(plain)
		now := metav1.NowMicro()
		for _, object := range []runtime.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}},
			&coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "clusterset-dns-blue", Name: member.HeartbeatLease, Annotations: map[string]string{
						member.HeartbeatSetAnnotation: "blue",
					},
				},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("east"), RenewTime: &now},
			},
		} {
			if err := client.Tracker().Add(object); err != nil {
				t.Fatal(err)
			}
		}
		o := Options{
			Cluster: &cluster.Cluster{Context: "east", Namespace: "clusterset-dns-blue", Kube: client},
			Mode:    mode, Image: "ours", Zone: "blue.local.",
		}
		const want = "the controller in namespace clusterset-dns-blue is of cluster set blue"
		if err := Enable(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "`clusterset blue`") {
			t.Errorf("%s: got %v", mode, err)
		}
		if got := corefileOf(t, client, Name).Data[Key]; got != plain {
			t.Errorf("%s: it changed\n%s", mode, got)
		}
	}
}

func TestSetOfAZone(t *testing.T) {
	for text, want := range map[string]string{
		"blue.local {\n multicluster {\n cluster east\n clusterset blue\n }\n}":                                            "blue",
		"blue.local {\n multicluster\n}":                                                                                   "",
		"(multicluster-options) {\n clusterset red\n}\nblue.local {\n import /etc/clusterset-dns/*.conf\n}":                "red",
		"clusterset.local {\n multicluster {\n clusterset red\n }\n}\nblue.local {\n multicluster {\n cluster east\n }\n}": "",
	} {
		corefile, err := ParseCorefile(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := corefile.Set("blue.local."); string(got) != want {
			t.Errorf("got %q, want %q of\n%s", got, want, text)
		}
	}
}
