// SPDX-License-Identifier: Apache-2.0

package coredns

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
					Image: "stock:v1.12.2",
				}}}},
			},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Name},
			Data:       map[string]string{Key: corefile},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "clusterset-coredns"},
			Subjects:   []rbacv1.Subject{{Namespace: Namespace, Name: "coredns"}, {Namespace: Namespace, Name: "clusterset-coredns"}},
		},
		chartService("apps", "10.96.0.66"), // of a tenant, who cannot write the binding
		chartService(Namespace, "10.96.0.99"),
	)
	client.Resources = []*metav1.APIResourceList{
		{GroupVersion: "multicluster.x-k8s.io/v1beta1"}, {GroupVersion: "multicluster.x-k8s.io/v1alpha1"},
	}
	return client
}

func chartService(namespace, address string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "clusterset-coredns", Labels: map[string]string{
			"app.kubernetes.io/name": "clusterset-dns", "app.kubernetes.io/component": "coredns",
		}},
		Spec: corev1.ServiceSpec{ClusterIP: address, ClusterIPs: []string{address}},
	}
}

// change runs Enable or Disable, and returns what it says.
func (o Options) do(t *testing.T, what func(context.Context, Options) error) string {
	t.Helper()
	var said bytes.Buffer
	o.Teller = progress.Teller{Out: &said, Results: io.Discard, Timeout: time.Minute}
	if err := what(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return said.String()
}

func corefileOf(t *testing.T, client *fake.Clientset, name string) *corev1.ConfigMap {
	t.Helper()
	configMap, err := client.CoreV1().ConfigMaps(Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return configMap
}

const (
	noID     = "(multicluster-options) {\n}\n"
	plain    = ". {\n  errors\n  kubernetes cluster.local {\n  }\n}\n"
	imports  = mark + "clusterset.local {\n  errors\n    import /etc/clusterset-dns/*.conf\n}\n"
	forwards = mark + "clusterset.local {\n  errors\n    forward . 10.96.0.99\n}\n"
)

// TestDisableRevertsEnable runs both, and what an administrator does before, between and after stays.
func TestDisableRevertsEnable(t *testing.T) {
	for name, test := range map[string]struct {
		mode string
		// before is the Corefile before enable, enabled the one after it, edited what the administrator makes of that, left
		// the Corefile after disable, and image the image.
		before, enabled, edited, left, image string
		says                                 string
	}{
		"image":   {ByMulticluster, plain, noID + plain + imports, "", plain, "stock:v1.12.2", ""},
		"forward": {ByForward, plain, plain + forwards, "", plain, "stock:v1.12.2", ""},
		"stock": {
			ByKubernetes, plain,
			". {\n  errors\n  kubernetes cluster.local clusterset.local {\n      multicluster clusterset.local\n  }\n}\n", "",
			plain, "stock:v1.12.2", "",
		},
		"a zone that was added by hand": {
			ByMulticluster,
			plain, noID + plain + imports, noID + plain + imports + "example.org {\n  multicluster\n}\n",
			plain + "example.org {\n  multicluster\n}\n", "ours",
			"still uses the plugin multicluster, so the image and the permissions of CoreDNS are kept",
		},
		"a directive that was there before": {
			ByMulticluster,
			". {\n  multicluster clusterset.local\n}\n", ". {\n  multicluster clusterset.local\n}\n", "",
			". {\n  multicluster clusterset.local\n}\n", "ours", "which `coredns enable` did not add: it is kept",
		},
		"the block is no longer recognized": {
			ByForward, plain, plain + forwards,
			plain + "clusterset.local {\n  forward . 10.96.0.99\n}\n", plain + "clusterset.local {\n  forward . 10.96.0.99\n}\n",
			"stock:v1.12.2", "was edited since `coredns enable`: remove clusterset.local from its Corefile by hand",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := install(test.before)
			o := Options{
				Cluster: &cluster.Cluster{Context: "east", Namespace: "clusterset-dns", Kube: client},
				Image:   "ours", Mode: test.mode, Zone: "clusterset.local.",
			}
			o.do(t, Enable)
			enabled := corefileOf(t, client, Name)
			if enabled.Data[Key] != test.enabled {
				t.Fatalf("enabled\n%s\nwant\n%s", enabled.Data[Key], test.enabled)
			}
			if test.edited != "" {
				enabled.Data[Key] = test.edited
				if _, err := client.CoreV1().ConfigMaps(Namespace).Update(t.Context(), enabled,
					metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			other := o
			other.Zone = "example.net"
			other.do(t, Disable)
			said := o.do(t, Disable)
			if after := corefileOf(t, client, Name); after.Data[Key] != test.left || len(after.Annotations) > 0 {
				t.Errorf("got %v\n%s\nwant\n%s", after.Annotations, after.Data[Key], test.left)
			}
			deployment, err := client.AppsV1().Deployments(Namespace).Get(t.Context(), Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := Container(deployment).Image; got != test.image {
				t.Errorf("the image is %s, want %s", got, test.image)
			}
			if test.image != "ours" && len(deployment.Spec.Template.Annotations) > 0 {
				t.Errorf("the pods keep the annotations %v", deployment.Spec.Template.Annotations)
			}
			if _, err := client.RbacV1().ClusterRoles().Get(t.Context(), Rights,
				metav1.GetOptions{}); (err == nil) != (test.image == "ours") {
				t.Errorf("ClusterRole: %v", err)
			}
			if !strings.Contains(said, test.says) {
				t.Errorf("it says %q, want %q", said, test.says)
			}
		})
	}
}

// TestRightsStayWithTheOption: without them, CoreDNS does not become ready at its next start.
func TestRightsStayWithTheOption(t *testing.T) {
	client := install(". {\n  kubernetes cluster.local clusterset.local {\n    multicluster clusterset.local\n  }\n}\n")
	o := Options{
		Cluster: &cluster.Cluster{Context: "east", Namespace: "clusterset-dns", Kube: client},
		Mode:    ByKubernetes, Zone: "clusterset.local.",
	}
	o.do(t, Enable)
	if said := o.do(t, Disable); !strings.Contains(said, "did not add: it is kept") {
		t.Errorf("it says %q", said)
	}
	if _, err := client.RbacV1().ClusterRoles().Get(t.Context(), Rights, metav1.GetOptions{}); err != nil {
		t.Errorf("the option is kept, the rights are not: %v", err)
	}
}

// TestEnableAgain follows the Service of the chart to another address, and can be reverted after the Corefile was.
func TestEnableAgain(t *testing.T) {
	client := install(plain)
	o := Options{
		Cluster: &cluster.Cluster{Context: "east", Namespace: "clusterset-dns", Kube: client},
		Mode:    ByForward, Zone: "clusterset.local.",
	}
	o.do(t, Enable)
	moved := chartService(Namespace, "10.96.0.77")
	if _, err := client.CoreV1().Services(Namespace).Update(t.Context(), moved, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	o.do(t, Enable)
	if got, want := corefileOf(t, client, Name).Data[Key], plain+strings.Replace(forwards, ".99", ".77", 1); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	reverted := corefileOf(t, client, Name)
	reverted.Data[Key] = plain // the annotation stays
	if _, err := client.CoreV1().ConfigMaps(Namespace).Update(t.Context(), reverted, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	o.do(t, Enable)
	o.do(t, Disable)
	if after := corefileOf(t, client, Name); after.Data[Key] != plain || len(after.Annotations) > 0 {
		t.Errorf("got %v\n%s", after.Annotations, after.Data[Key])
	}
}

func TestNodeLocalDNSCache(t *testing.T) {
	client := install(plain)
	o := Options{
		Cluster: &cluster.Cluster{Context: "east", Namespace: "clusterset-dns", Kube: client},
		Mode:    ByKubernetes, Zone: "clusterset.local.", NodeLocal: true,
		Teller: progress.Teller{Out: io.Discard, Results: io.Discard, Timeout: time.Minute},
	}
	if err := Enable(t.Context(), o); err == nil || !strings.Contains(err.Error(), "run without --node-local") {
		t.Errorf("there is none: %v", err)
	}
	if got := corefileOf(t, client, Name).Data[Key]; got != plain {
		t.Errorf("it failed, and left\n%s", got)
	}
	volume := corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "node-local-dns"},
	}}}
	for _, object := range []runtime.Object{
		&appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: Namespace, Name: "node-local-dns", Labels: map[string]string{"k8s-app": "node-local-dns"},
			},
			Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: []corev1.Volume{volume}}}},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "node-local-dns"}, Data: map[string]string{Key: nodeLocal},
		},
	} {
		if err := client.Tracker().Add(object); err != nil {
			t.Fatal(err)
		}
	}
	o.do(t, Enable)
	text := corefileOf(t, client, "node-local-dns").Data[Key]
	if !strings.HasPrefix(text, nodeLocal+mark+"clusterset.local:53 {\n") || !parse(t, text).Passes("clusterset.local") {
		t.Errorf("got\n%s", text)
	}
	o.do(t, Enable)
	if again := corefileOf(t, client, "node-local-dns").Data[Key]; again != text {
		t.Errorf("a second time changed it:\n%s", again)
	}
	o.do(t, Disable)
	if back := corefileOf(t, client, "node-local-dns").Data[Key]; back != nodeLocal {
		t.Errorf("got back\n%s", back)
	}
}

func TestEnableRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		mode string
		edit func(*appsv1.Deployment)
		want string
	}{
		"an old stock image": {ByKubernetes, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = "registry.example.org:5000/coredns:v1.11.4-eksbuild.2"
		}, "is older than CoreDNS 1.12.2, which has the option multicluster: use --forward, or --image"},
		"an old stock image with a digest": {ByKubernetes, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = "registry.example.org/coredns:v1.11.1@sha256:ab12"
		}, "is older than CoreDNS 1.12.2"},
		"an API without v1alpha1": {ByKubernetes, func(*appsv1.Deployment) {}, "v1alpha1, which is not served: use --forward"},
		"Amazon EKS": {ByForward, func(d *appsv1.Deployment) {
			d.Labels = map[string]string{"eks.amazonaws.com/component": "coredns"}
		}, "Amazon EKS manages the CoreDNS of this cluster and would revert the change: forward the zone in the configuration of the add-on (`corefile`), or use --force"},
		"Argo CD": {ByForward, func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "dns:apps/Deployment:kube-system/coredns"}
		}, "Argo CD manages"},
		"Helm": {ByForward, func(d *appsv1.Deployment) {
			d.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
		}, "Helm manages"},
		"no CoreDNS to forward to": {ByForward, func(*appsv1.Deployment) {}, "install the chart with --set coredns.enabled=true"},
	} {
		t.Run(name, func(t *testing.T) {
			client := install(plain)
			deployment, err := client.AppsV1().Deployments(Namespace).Get(t.Context(), Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			test.edit(deployment)
			if err := client.Tracker().Update(appsv1.SchemeGroupVersion.WithResource("deployments"), deployment,
				Namespace); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(test.want, "not served") {
				client.Resources = client.Resources[:1]
			}
			if test.want == "install the chart with --set coredns.enabled=true" {
				if err := client.CoreV1().Services(Namespace).Delete(t.Context(), "clusterset-coredns",
					metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			o := Options{Cluster: &cluster.Cluster{Context: "east", Kube: client}, Mode: test.mode, Zone: "clusterset.local."}
			if err := Enable(t.Context(), o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if got := corefileOf(t, client, Name).Data[Key]; got != plain {
				t.Errorf("it changed\n%s", got)
			}
		})
	}
	for name, test := range map[string]struct {
		object runtime.Object
		want   string
	}{
		"OpenShift": {
			&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-dns", Name: "dns-default"}},
			"`spec.servers` of dns.operator/default",
		},
		"GKE":        {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "kube-dns"}}, "`stubDomains`"},
		"RKE2":       {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "rke2-coredns-rke2-coredns"}}, "HelmChartConfig"},
		"none known": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}, "Forward the zone in its DNS server"},
	} {
		client := fake.NewClientset(test.object)
		o := Options{Cluster: &cluster.Cluster{Context: "east", Kube: client}, Mode: ByForward, Zone: "clusterset.local."}
		if err := Enable(t.Context(), o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}
