// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

const system = cluster.DefaultNamespace

// installed is a cluster with a controller, whose pods never become ready.
func installed(id string, more ...runtime.Object) *fake.Clientset {
	client := fake.NewClientset(append([]runtime.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID("uid-of-" + id)}},
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: cluster.HeartbeatLease},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(id)},
		},
	}, more...)...)
	client.Resources = []*metav1.APIResourceList{{GroupVersion: "multicluster.x-k8s.io/v1beta1"}}
	return client
}

func deployment() *appsv1.Deployment {
	made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "clusterset-controller"}}
	made.Spec.Template.Spec = corev1.PodSpec{
		NodeSelector:     map[string]string{"pool": "system"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
		Containers: []corev1.Container{{
			Name: "controller", Image: "example.org/clusterset-controller:1", Args: []string{"--cluster-id=x"},
			SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To[int64](7)},
		}},
	}
	return made
}

// TestNothingIsLeft: a test that cannot go on deletes its pods, which own its other objects, and nothing else. It names a pod
// that it cannot delete. Its pods run as the controller does.
func TestNothingIsLeft(t *testing.T) {
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "clusterset-probe-other-0"}}
	unknown := func(pod *corev1.Pod, _ func()) {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "Error", Message: `unknown command "probe"`},
		}}}
	}
	interrupt := func(_ *corev1.Pod, stop func()) { stop() }
	cut := installed("e", deployment())
	cut.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no connection")
	})
	for name, test := range map[string]struct {
		east, west *fake.Clientset
		// interfere changes what becomes of the pod of west, or ends the test.
		interfere func(pod *corev1.Pod, stop func())
		want      string
	}{
		"an image without the command": {
			installed("e", deployment()), installed("w", deployment(), other), unknown,
			`exited: Error unknown command "probe": the controller must have the version of this command`,
		},
		"an interrupt": {installed("e", deployment()), installed("w", deployment(), other), interrupt, context.Canceled.Error()},
		"a cluster that is cut off": {
			cut, installed("w", deployment(), other), interrupt, "context east: a pod is not deleted: no connection: " +
				"kubectl --context east -n clusterset-dns delete pod clusterset-probe-",
		},
		"no Deployment":     {installed("e", deployment()), installed("w", other), nil, "the image of the controller"},
		"one cluster twice": {installed("e"), installed("e", other), nil, "refer to the same cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			test.west.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
				container := pod.Spec.Containers[0]
				if container.Image != "example.org/clusterset-controller:1" || *container.SecurityContext.RunAsUser != 7 ||
					pod.Spec.NodeSelector["pool"] != "system" || *pod.Spec.AutomountServiceAccountToken ||
					!slices.Equal(container.Args[:2], []string{"probe", "w"}) || !strings.HasSuffix(container.Args[2], "=e") {
					t.Errorf("got %+v", pod.Spec)
				}
				test.interfere(pod, stop)
				return false, nil, nil
			})
			_, err := Connect(ctx, []*cluster.Cluster{
				{Context: "east", Namespace: system, Kube: test.east, Dynamic: dynamicfake.NewSimpleDynamicClient(scheme.Scheme)},
				{Context: "west", Namespace: system, Kube: test.west, Dynamic: dynamicfake.NewSimpleDynamicClient(scheme.Scheme)},
			}, "clusterset.local", cluster.Teller{Out: io.Discard, Results: io.Discard, Timeout: time.Minute})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			for client, want := range map[*fake.Clientset][]string{test.east: nil, test.west: {other.Name}} {
				pods, err := client.CoreV1().Pods(system).List(t.Context(), metav1.ListOptions{})
				services, failed := client.CoreV1().Services(system).List(t.Context(), metav1.ListOptions{})
				must(t, err, failed)
				var got []string
				for i := range pods.Items {
					got = append(got, pods.Items[i].Name)
				}
				if !slices.Equal(got, want) && client != cut {
					t.Errorf("got %q, want %q", got, want)
				}
				for i := range services.Items {
					if owners := services.Items[i].OwnerReferences; len(owners) != 1 || owners[0].Kind != "Pod" {
						t.Errorf("Service %s has the owners %v", services.Items[i].Name, owners)
					}
				}
			}
		})
	}
}

// TestReport has what to do about each path that fails.
func TestReport(t *testing.T) {
	report := ConnectivityReport{
		{"east", "east", "a.clusterset.local", state.ProbeResult{Step: state.ProbeOK}},
		{"east", "west", "b.clusterset.local", state.ProbeResult{Step: state.ProbeTimeout, Error: "i/o timeout"}},
	}
	const want = "FROM   TO     RESULT\neast   east   ok\neast   west   connection times out\n\n" +
		"✗  east → west: b.clusterset.local: connection times out (i/o timeout)\n   > Route the pod ranges"
	var out strings.Builder
	if report.Text(&out); len(fixes) != 4 ||
		!strings.HasPrefix(out.String(), want) || !strings.HasSuffix(out.String(), "\n1 of 2 connections are ok\n") {
		t.Errorf("%d fixes\n%s", len(fixes), out.String())
	}
}
