// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestPods: the ports of a pod are read once, and after an error again by the next reconcile.
func TestPods(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0", UID: "1"},
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 15, HostPort: 31}}}}, Containers: []corev1.Container{
			{Ports: []corev1.ContainerPort{{ContainerPort: 5432, HostPort: 30}}}, {}, {Ports: []corev1.ContainerPort{{ContainerPort: 80}}},
		}},
	}
	client := fake.NewClientset(pod)
	var answer error
	requests := 0
	client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		requests++
		return answer != nil, nil, answer
	})
	pods := NewPods(client.CoreV1())
	of := corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "db-0", UID: "1"}
	other := corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "db-0", UID: "2"}
	forbidden := apierrors.NewForbidden(corev1.Resource("pods"), "db-0", errors.New("no right"))
	for _, step := range []struct {
		name     string
		answer   error
		known    bool // asks for what is known
		of       corev1.ObjectReference
		want     string
		requests int // of two questions
	}{
		{"at first", nil, true, of, "pod db-0 cannot be read: it was not read yet", 0},
		{"an error", errors.New("unavailable"), false, of, "pod db-0 cannot be read: unavailable", 2},
		{"without the right", forbidden, false, of, "set controller.readPods", 1},
		{"as known", nil, true, of, "set controller.readPods", 0},
		{"another pod", nil, false, other, "it was replaced", 2},
		{"no pod", nil, false, corev1.ObjectReference{}, "cannot be read", 2},
		{"with the right", nil, false, of, "[15->31 5432->30 80->0]", 1},
		{"again", errors.New("unavailable"), false, of, "[15->31 5432->30 80->0]", 0},
		{"as known at last", nil, true, of, "[15->31 5432->30 80->0]", 0},
	} {
		answer, requests = step.answer, 0
		ask := pods.Known
		if !step.known {
			ask = pods.Read(t.Context())
		}
		for range 2 {
			ports, err := ask(step.of)
			got := fmt.Sprint(err)
			if err == nil {
				var texts []string
				for _, port := range ports {
					texts = append(texts, fmt.Sprintf("%d->%d", port.ContainerPort, port.HostPort))
				}
				got = fmt.Sprint(texts)
			}
			if !strings.Contains(got, step.want) {
				t.Errorf("%s: got %s", step.name, got)
			}
		}
		if requests != step.requests {
			t.Errorf("%s: %d requests", step.name, requests)
		}
	}
}
