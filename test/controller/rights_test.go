// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// TestMemberRights tries the credential of a member by hand against a real API
// server: what it may do, and what it may not.
func TestMemberRights(t *testing.T) {
	t.Parallel()
	bed := &realBed{}
	run(t, bed, func(s *scenario.Set, east, _ *scenario.Cluster) {
		east.Serve("web:10.64.0.10")
		s.Judged(s.Pair("west", "east"), "Heard")
		tryMember(t, bed.planes["east"], s.Namespace())
	})
}

// tryMember tries it in a cluster whose controller runs, and whose namespace demo
// has a Service web.
func tryMember(t *testing.T, east *controlplane.Cluster, demo string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(configOf(t, east, system, memberName))
	must(t, err)
	ctx := t.Context()
	none := metav1.ListOptions{}
	get, create, update, remove := metav1.GetOptions{}, metav1.CreateOptions{}, metav1.UpdateOptions{}, metav1.DeleteOptions{}
	theHeartbeat := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, member.HeartbeatLease).String()}
	lease, err := east.Client().CoordinationV1().Leases(system).Get(ctx, member.HeartbeatLease, get)
	must(t, err)

	for name, try := range map[string]func() error{
		"list EndpointSlices of all namespaces": func() error { _, err := client.DiscoveryV1().EndpointSlices("").List(ctx, none); return err },
		"watch EndpointSlices of all namespaces": func() error {
			w, err := client.DiscoveryV1().EndpointSlices("").Watch(ctx, none)
			if err == nil {
				w.Stop()
			}
			return err
		},
		"get the heartbeat": func() error {
			_, err := client.CoordinationV1().Leases(system).Get(ctx, member.HeartbeatLease, get)
			return err
		},
		"list the heartbeat": func() error { _, err := client.CoordinationV1().Leases(system).List(ctx, theHeartbeat); return err },
		"watch the heartbeat": func() error {
			w, err := client.CoordinationV1().Leases(system).Watch(ctx, theHeartbeat)
			if err == nil {
				w.Stop()
			}
			return err
		},
	} {
		if err := try(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, AddressType: discoveryv1.AddressTypeIPv4}
	for name, try := range map[string]func() error{
		"get an EndpointSlice by name": func() error {
			_, err := client.DiscoveryV1().EndpointSlices(demo).Get(ctx, "web-ipv4", get)
			return err
		},
		"create an EndpointSlice": func() error {
			_, err := client.DiscoveryV1().EndpointSlices(demo).Create(ctx, slice, create)
			return err
		},
		"update an EndpointSlice": func() error {
			changed := slice.DeepCopy()
			changed.Name = "web-ipv4"
			_, err := client.DiscoveryV1().EndpointSlices(demo).Update(ctx, changed, update)
			return err
		},
		"patch an EndpointSlice": func() error {
			_, err := client.DiscoveryV1().EndpointSlices(demo).Patch(ctx, "web-ipv4", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
			return err
		},
		"delete an EndpointSlice": func() error { return client.DiscoveryV1().EndpointSlices(demo).Delete(ctx, "web-ipv4", remove) },
		"update the heartbeat":    func() error { _, err := client.CoordinationV1().Leases(system).Update(ctx, lease, update); return err },
		"delete the heartbeat":    func() error { return client.CoordinationV1().Leases(system).Delete(ctx, lease.Name, remove) },
		"create a Lease": func() error {
			_, err := client.CoordinationV1().Leases(system).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}, create)
			return err
		},
		"get another Lease": func() error {
			_, err := client.CoordinationV1().Leases(system).Get(ctx, controller.LeaderLease, get)
			return err
		},
		"get the Lease of another namespace": func() error {
			_, err := client.CoordinationV1().Leases("default").Get(ctx, member.HeartbeatLease, get)
			return err
		},
		"list all Leases of the namespace": func() error { _, err := client.CoordinationV1().Leases(system).List(ctx, none); return err },
		"list Leases of all namespaces":    func() error { _, err := client.CoordinationV1().Leases("").List(ctx, theHeartbeat); return err },
		"list Secrets":                     func() error { _, err := client.CoreV1().Secrets(system).List(ctx, none); return err },
		"list Services":                    func() error { _, err := client.CoreV1().Services(demo).List(ctx, none); return err },
		"get a Service":                    func() error { _, err := client.CoreV1().Services(demo).Get(ctx, "web", get); return err },
		"list Pods":                        func() error { _, err := client.CoreV1().Pods(demo).List(ctx, none); return err },
		"create a Pod":                     func() error { _, err := client.CoreV1().Pods(demo).Create(ctx, pod, create); return err },
		"list Nodes":                       func() error { _, err := client.CoreV1().Nodes().List(ctx, none); return err },
		"list Namespaces":                  func() error { _, err := client.CoreV1().Namespaces().List(ctx, none); return err },
		"list ConfigMaps":                  func() error { _, err := client.CoreV1().ConfigMaps(system).List(ctx, none); return err },
	} {
		if err := try(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want it forbidden", name, err)
		}
	}
}

// TestControllerRights tries what the controller's own credential must not be
// able to do.
func TestControllerRights(t *testing.T) {
	t.Parallel()
	client, err := kubernetes.NewForConfig(configOf(t, one(t), system, controllerName))
	must(t, err)
	ctx := t.Context()
	for name, try := range map[string]func() error{
		"list Secrets of all namespaces": func() error { _, err := client.CoreV1().Secrets("").List(ctx, metav1.ListOptions{}); return err },
		"update a Secret": func() error {
			_, err := client.CoreV1().Secrets(system).Update(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.UpdateOptions{})
			return err
		},
		"list Pods": func() error { _, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{}); return err },
		"delete a Namespace": func() error {
			return client.CoreV1().Namespaces().Delete(ctx, "default", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		},
		"update a Lease of another namespace": func() error {
			_, err := client.CoordinationV1().Leases("default").Update(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}, metav1.UpdateOptions{})
			return err
		},
	} {
		if err := try(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want it forbidden", name, err)
		}
	}
}
