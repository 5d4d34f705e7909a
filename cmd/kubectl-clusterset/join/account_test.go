// SPDX-License-Identifier: Apache-2.0

package join

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/names"
)

// between returns the peering by which west reads east, whose clusters have objects.
func between(source, reader []runtime.Object) *peering {
	return &peering{
		source:   &cluster.Cluster{Context: "east", Namespace: system, Kube: fake.NewClientset(source...)},
		sourceID: "east",
		reader:   &cluster.Cluster{Context: "west", Namespace: system, Kube: fake.NewClientset(reader...)},
		readerID: "west",
	}
}

// TestAllow: an account gets the one right, by its name, and both objects go with their owner.
func TestAllow(t *testing.T) {
	owner := map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "member-west", "uid": "1"}
	objects := allow("system", "member-west", nil, owner, "clusterset-controller", map[string]any{
		"apiGroups": []any{""}, "resources": []any{"secrets"}, "resourceNames": []any{"member-west"}, "verbs": []any{"update"},
	})
	if len(objects) != 2 || objects[0].GetKind() != "Role" || objects[1].GetKind() != "RoleBinding" {
		t.Fatalf("got %v", objects)
	}
	for _, each := range objects {
		if owners := each.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != "1" || each.GetNamespace() != "system" {
			t.Errorf("%s belongs to %v", each.GetKind(), owners)
		}
	}
	name, _, _ := unstructured.NestedString(objects[1].Object, "roleRef", "name")
	subjects, _, _ := unstructured.NestedSlice(objects[1].Object, "subjects")
	if name != "member-west" || len(subjects) != 1 || subjects[0].(map[string]any)["name"] != "clusterset-controller" {
		t.Errorf("the binding is %v", objects[1].Object)
	}
}

// TestProjected finds what the chart renders for members[].audience.
func TestProjected(t *testing.T) {
	deployment := func(argument, path string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: ControllerName, Namespace: system}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{"-v=0", argument}}}
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "other"}, {VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
				ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: path, Audience: "https://east"},
			}}},
		}}}
		return d
	}
	const argument = "--member=east=/etc/clusterset-dns/members/east"
	for name, test := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"the chart":                  {[]runtime.Object{deployment(argument, "east")}, "https://east"},
		"a token for another":        {[]runtime.Object{deployment(argument, "north")}, ""},
		"a member of another":        {[]runtime.Object{deployment("--member=east2=/a", "east")}, ""},
		"no Deployment of this name": {nil, ""},
	} {
		if got := projected(t.Context(), between(nil, test.objects)); got != test.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestRevoke deletes no account but those of readers.
func TestRevoke(t *testing.T) {
	for reader, want := range map[string]int{"west": 1, "": 2, "lost": 0} {
		var objects []runtime.Object
		for name, id := range map[string]string{
			"clusterset-member-west": "west", "clusterset-member-north": "north", "clusterset-controller": "west",
			"clusterset-member": "",
		} {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: system}}
			if id != "" {
				account.Labels = map[string]string{names.ReaderLabel: id}
			}
			objects = append(objects, account)
		}
		c := between(objects, nil).source
		count, err := Revoke(t.Context(), c, reader, nil)
		left, listErr := c.Kube.CoreV1().ServiceAccounts(system).List(t.Context(), metav1.ListOptions{})
		if err != nil || listErr != nil || count != want || len(left.Items) != 4-want {
			t.Errorf("of %q: %d deleted, %d left, %v, %v", reader, count, len(left.Items), err, listErr)
		}
	}
}
