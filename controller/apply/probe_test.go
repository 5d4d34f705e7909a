// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestProbe: a probe is a dry run of a slice that the cluster publishes.
func TestProbe(t *testing.T) {
	client := fake.NewClientset()
	if err := Probe(t.Context(), client, "system", "east"); err != nil {
		t.Fatal(err)
	}
	create := client.Actions()[0].(clienttesting.CreateActionImpl)
	slice := create.GetObject().(*discoveryv1.EndpointSlice)
	if fmt.Sprint(create.GetCreateOptions().DryRun) != "[All]" || create.GetNamespace() != "system" ||
		slice.Labels[export.LabelSourceCluster] != "east" || !export.IsManaged(slice) {
		t.Errorf("probed with %v in %s: %v", create.GetCreateOptions(), create.GetNamespace(), slice)
	}
}
