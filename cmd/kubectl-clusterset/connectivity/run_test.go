// SPDX-License-Identifier: Apache-2.0

package connectivity

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
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/probepod"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

const system = member.DefaultNamespace

// installed is a cluster with a controller, whose pods never become ready.
func installed(id string, more ...runtime.Object) *fake.Clientset {
	return fake.NewClientset(append([]runtime.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID("uid-of-" + id)}},
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: member.HeartbeatLease},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(id)},
		},
	}, more...)...)
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

func run(ctx context.Context, image string, east, west *fake.Clientset) error {
	_, err := Run(ctx, Options{
		Clusters: []*cluster.Cluster{
			{Context: "east", Namespace: system, Kube: east}, {Context: "west", Namespace: system, Kube: west},
		},
		Image: image, Zone: "clusterset.local",
		Teller: progress.Teller{Out: io.Discard, Results: io.Discard, Timeout: time.Minute},
	})
	return err
}

// left are the names of Services and pods of a cluster.
func left(t *testing.T, client *fake.Clientset) (names []string) {
	t.Helper()
	services, err := client.CoreV1().Services(system).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range services.Items {
		names = append(names, services.Items[i].Name)
	}
	pods, err := client.CoreV1().Pods(system).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return names
}

// TestNothingIsLeft: a test that cannot go on deletes what it created, and
// nothing else.
func TestNothingIsLeft(t *testing.T) {
	existing := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: nameWithIP}}
	for _, test := range []struct {
		name       string
		image      string
		east, west *fake.Clientset
		// interfere changes what becomes of a pod of west, or ends the test.
		interfere func(pod *corev1.Pod, stop func())
		want      string
		left      []string
	}{
		{
			name: "another test runs", east: installed("e", deployment()), west: installed("w", deployment(), existing),
			want: "context west: Service clusterset-probe-ip exists: another test is running, or was killed: " +
				"kubectl --context west -n clusterset-dns delete serviceexports,services,pods -l ",
			left: []string{nameWithIP},
		},
		{
			name: "an image without the command", east: installed("e", deployment()), west: installed("w", deployment()),
			interfere: func(pod *corev1.Pod, _ func()) {
				pod.Status.Phase = corev1.PodFailed
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{Reason: "Error", Message: `unknown command "probe"`},
				}}}
			},
			want: `exited: Error unknown command "probe": set a newer image`,
		},
		{
			name: "an interrupt", east: installed("e", deployment()), west: installed("w", deployment()),
			interfere: func(_ *corev1.Pod, stop func()) { stop() }, want: context.Canceled.Error(),
		},
		{
			name: "no Deployment", east: installed("e", deployment()), west: installed("w"),
			want: "set the image with --image",
		},
		{
			name: "one cluster twice", image: "x", east: installed("e"), west: installed("e"),
			want: "refer to the same cluster",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if test.interfere != nil {
				test.west.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
					test.interfere(action.(clienttesting.CreateAction).GetObject().(*corev1.Pod), stop)
					return false, nil, nil
				})
			}
			if err := run(ctx, test.image, test.east, test.west); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if got := left(t, test.east); len(got) > 0 {
				t.Errorf("east has %v", got)
			}
			if got := left(t, test.west); !slices.Equal(got, test.left) {
				t.Errorf("west has %v, want %v", got, test.left)
			}
		})
	}
}

// TestWhatIsLeftIsNamed: a cluster that does not let go of an object.
func TestWhatIsLeftIsNamed(t *testing.T) {
	east, west := installed("e"), installed("w")
	ctx, stop := context.WithCancel(t.Context())
	east.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		stop()
		return false, nil, nil
	})
	east.PrependReactor("delete", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no connection")
	})
	err := run(ctx, "x", east, west)
	if err == nil || !strings.Contains(err.Error(), "context east: not all objects are deleted: no connection") ||
		!strings.Contains(err.Error(), "kubectl --context east -n clusterset-dns delete ") {
		t.Errorf("got %v", err)
	}
}

// TestPodsRunAsTheController does, where one is installed, and else restricted.
func TestPodsRunAsTheController(t *testing.T) {
	for _, test := range []struct {
		image, want string
		client      *fake.Clientset
		user        *int64
		selector    string
	}{
		{"", "example.org/clusterset-controller:1", installed("e", deployment()), ptr.To[int64](7), "system"},
		{"other", "other", installed("e", deployment()), ptr.To[int64](7), "system"},
		{"other", "other", installed("e"), nil, ""},
	} {
		spec, err := probepod.Template(t.Context(), &cluster.Cluster{Context: "east", Namespace: system, Kube: test.client},
			test.image)
		if err != nil {
			t.Fatal(err)
		}
		pod := podOf(spec, 1, "e")
		container := pod.Spec.Containers[0]
		if container.Image != test.want || !ptr.Equal(container.SecurityContext.RunAsUser, test.user) ||
			pod.Spec.NodeSelector["pool"] != test.selector {
			t.Errorf("--image %q: got %+v", test.image, pod.Spec)
		}
		if !slices.Equal(container.Args, []string{"probe", "--identity=e/clusterset-probe-1"}) ||
			pod.Spec.Hostname != pod.Name || pod.Spec.Subdomain != Name || *pod.Spec.AutomountServiceAccountToken {
			t.Errorf("--image %q: got %+v", test.image, pod.Spec)
		}
	}
}
