// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

func TestHeadlessServicesAreAsLargeAsAskedFor(t *testing.T) {
	for _, tc := range []struct{ endpoints, slices, east int }{
		{10, 2, 5}, {20, 2, 10}, {50, 5, 30}, {100, 10, 50}, {1000, 100, 500},
	} {
		set := &Set{Namespace: "demo"}
		set.Headless("db", tc.endpoints)
		perCluster, addresses := map[string]int{}, map[string]bool{}
		for _, slice := range set.Slices {
			if len(slice.Endpoints) == 0 || len(slice.Endpoints) > PerSlice {
				t.Errorf("%s has %d endpoints", slice.Name, len(slice.Endpoints))
			}
			cluster := slice.Labels[mcsv1beta1.LabelSourceCluster]
			perCluster[cluster] += len(slice.Endpoints)
			for _, endpoint := range slice.Endpoints {
				addresses[endpoint.Addresses[0]] = true
				if (endpoint.Hostname != nil) != (cluster == "east") {
					t.Errorf("an endpoint of %s has hostname %v", cluster, endpoint.Hostname)
				}
			}
		}
		if len(addresses) != tc.endpoints || perCluster["east"] != tc.east || perCluster["west"] != tc.endpoints-tc.east {
			t.Errorf("of %d endpoints there are %d addresses, by cluster %v", tc.endpoints, len(addresses), perCluster)
		}
		if len(set.Slices) != tc.slices || SlicesOf(tc.endpoints) != tc.slices {
			t.Errorf("%d endpoints are in %d slices, foretold %d, want %d", tc.endpoints, len(set.Slices), SlicesOf(tc.endpoints), tc.slices)
		}
	}
}
