// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

// install is a CoreDNS as kubeadm installs it, in a cluster that serves the MCS
// API.
func install(corefile string) *fake.Clientset {
	client := fake.NewClientset(
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Name},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](0),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "kube-dns"}},
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:  Name,
					Image: "stock",
				}}}},
			},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Name},
			Data:       map[string]string{Key: corefile},
		},
	)
	client.Resources = []*metav1.APIResourceList{{GroupVersion: "multicluster.x-k8s.io/v1beta1"}}
	return client
}

// TestDisableRemovesWhatEnableAdded runs both, and what an administrator does
// before, between and after stays.
func TestDisableRemovesWhatEnableAdded(t *testing.T) {
	for name, test := range map[string]struct {
		// before is the Corefile before enable, edited what the administrator makes
		// of it afterwards, left the Corefile after disable, and image the image.
		before, edited, left, image string
		says                        string
	}{
		"nothing else": {
			". {\n  errors\n}\n", ". {\n  multicluster clusterset.local\n  errors\n}\n", ". {\n  errors\n}\n", "stock",
			"",
		},
		"a zone that was added by hand": {
			". {\n  errors\n}\n", ". {\n  multicluster clusterset.local\n  multicluster example.org\n  errors\n}\n",
			". {\n  multicluster example.org\n  errors\n}\n", "ours",
			"still has the plugin multicluster, so that the image and the rights of CoreDNS stay",
		},
		"a directive that was there before": {
			". {\n  multicluster clusterset.local\n}\n", "", ". {\n  multicluster clusterset.local\n}\n", "ours",
			"was not added by `coredns enable`: it stays",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := install(test.before)
			var said bytes.Buffer
			o := Options{
				Cluster: &cluster.Cluster{Context: "east", Namespace: "clusterset-dns", Kube: client},
				Image:   "ours", Zone: "clusterset.local.", Teller: progress.Teller{
					Out: &said, Results: io.Discard,
					Timeout: time.Minute,
				},
			}
			if err := Enable(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			maps := client.CoreV1().ConfigMaps(Namespace)
			if test.edited != "" {
				enabled, err := maps.Get(t.Context(), Name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				enabled.Data[Key] = test.edited
				if _, err := maps.Update(t.Context(), enabled, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			other := o
			other.Zone = "example.net"
			for _, o := range []Options{other, o} {
				if err := Disable(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			after, err := maps.Get(t.Context(), Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if after.Data[Key] != test.left {
				t.Errorf("got\n%s\nwant\n%s", after.Data[Key], test.left)
			}
			deployment, err := client.AppsV1().Deployments(Namespace).Get(t.Context(), Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := Container(deployment).Image; got != test.image {
				t.Errorf("the image is %s, want %s", got, test.image)
			}
			if _, err := client.RbacV1().ClusterRoles().Get(t.Context(), Rights,
				metav1.GetOptions{}); (err == nil) != (test.image == "ours") {
				t.Errorf("ClusterRole: %v", err)
			}
			if !strings.Contains(said.String(), test.says) {
				t.Errorf("it says %q, want %q", said.String(), test.says)
			}
		})
	}
}
