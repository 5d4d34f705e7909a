// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"runtime"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// TestOpenedSlices: what a service takes once its slices are decoded is in proportion to what they count, whatever a
// member puts into fields that are not read, and what is read stays.
func TestOpenedSlices(t *testing.T) {
	const most = 20_000 // ports of two bytes each are within Limits.SliceBytes
	for name, fill := range map[string]func(*discoveryv1.EndpointSlice){
		"ports": func(one *discoveryv1.EndpointSlice) { one.Ports = make([]discoveryv1.EndpointPort, most) },
		"annotations": func(one *discoveryv1.EndpointSlice) {
			for i := range most {
				one.Annotations[fmt.Sprint(i)] = ""
			}
		},
		"labels": func(one *discoveryv1.EndpointSlice) {
			for i := range most {
				one.Labels[fmt.Sprint(i)] = ""
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, of := newSliceStore(func(types.NamespacedName) {}, func() {}), limits.NewPool(1<<30)
			store.account = limits.NewAccount("west", limits.Default, of, nil)
			read := map[string]string{
				export.AnnotationSnapshotPrefix + "v9": "s", export.AnnotationTriggerTime: "t",
			}
			for i := range 10 {
				one := slice(fmt.Sprint("slice-", i), "web", "1")
				one.Labels[export.LabelSourceCluster], one.Labels[export.LabelSliceManagedBy] = "west", export.Manager
				one.Annotations = map[string]string{}
				for key, value := range read {
					one.Annotations[key] = value
				}
				fill(one)
				if err := store.Add(one); err != nil {
					t.Fatal(err)
				}
			}
			weight, _ := of.Use()
			before := heap()
			opened := store.of(types.NamespacedName{Namespace: "demo", Name: "web"})
			took := heap() - before
			if t.Logf("%d bytes are counted, %d opened", weight, took); took > 4*weight {
				t.Errorf("slices that count %d bytes take %d once they are decoded", weight, took)
			}
			if len(opened) != 10 {
				t.Fatalf("there are %d slices", len(opened))
			}
			for key, value := range read {
				if opened[0].Annotations[key] != value {
					t.Errorf("the annotation %s is %q", key, opened[0].Annotations[key])
				}
			}
			if labels := opened[0].Labels; labels[export.LabelService] != "web" ||
				labels[export.LabelSourceCluster] != "west" || labels[export.LabelSliceManagedBy] != export.Manager {
				t.Errorf("the labels are %v", labels)
			}
			runtime.KeepAlive(opened)
			runtime.KeepAlive(store)
		})
	}
}

// TestServicesAreReadWithoutTheirEndpoints: which services there are costs no decoding of endpoints.
func TestServicesAreReadWithoutTheirEndpoints(t *testing.T) {
	store := newSliceStore(func(types.NamespacedName) {}, func() {})
	one := slice("a", "a", "1")
	for range 1000 {
		one.Endpoints = append(one.Endpoints, discoveryv1.Endpoint{Addresses: []string{"192.0.2.1"}})
	}
	if err := store.Add(one); err != nil {
		t.Fatal(err)
	}
	if in := store.services(); len(in) != 1 || in[0].Name != "a" {
		t.Errorf("the services are %v", in)
	}
	if allocations := testing.AllocsPerRun(10, func() { store.services() }); allocations > 100 {
		t.Errorf("to read the services takes %v allocations", allocations)
	}
}
