// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// ask has a cluster export web with the annotation within.
func ask(t *testing.T, c *sim.Cluster, within string) {
	t.Helper()
	exports := c.Dynamic.Resource(schema.GroupVersionResource{
		Group: v1beta1.GroupName, Version: "v1beta1", Resource: v1beta1.ServiceExportPluralName,
	}).Namespace(sim.Namespace)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.GroupName + "/v1beta1", "kind": v1beta1.ServiceExportKindName, "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"exportedAnnotations": map[string]any{export.AnnotationWithin: within}},
	}}
	before, err := exports.Get(context.Background(), "web", metav1.GetOptions{})
	if err != nil {
		_, err = exports.Create(context.Background(), object, metav1.CreateOptions{})
	} else {
		object.SetResourceVersion(before.GetResourceVersion())
		_, err = exports.Update(context.Background(), object, metav1.UpdateOptions{})
	}
	must(t, err)
}

// TestBorderIsLifted: while a border keeps clients from a member, its copies keep what is known of it. If the border is
// lifted while the member is silent or quarantined, its endpoints are used again, also by a new controller.
func TestBorderIsLifted(t *testing.T) {
	for name, lose := range map[string]func(set *sim.ClusterSet){
		"silent": func(set *sim.ClusterSet) { set.Cluster("west").StopAPI() },
		"silent, after a restart": func(set *sim.ClusterSet) {
			set.Cluster("west").StopAPI()
			sim.Wait(time.Minute)
			set.Cluster("east").StopController()
			set.Cluster("east").StartController()
		},
		"quarantined": func(set *sim.ClusterSet) {
			set.Cluster("east").StopController()
			set.Cluster("west").Withdraw("web") // its only one
			sim.Wait(10 * time.Second)
			set.Cluster("east").StartController()
		},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
				east, west := set.Cluster("east"), set.Cluster("west")
				east.Serve("web", false)
				ask(t, east, "local")
				sim.Wait(2 * time.Second)
				west.Serve("web", false, "10.65.0.1")
				ask(t, west, "local")
				sim.Wait(time.Minute)
				expect(t, east, map[string]string{"web": "west/10.65.0.1- -> VIP"})
				lose(set)
				sim.Wait(time.Minute)
				ask(t, east, "*")
				sim.Wait(time.Minute)
				expect(t, east, map[string]string{"web": "west/10.65.0.1 -> VIP"})
			})
		})
	}
}
