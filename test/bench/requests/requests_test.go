// SPDX-License-Identifier: Apache-2.0

package requests

import "testing"

func TestKindOf(t *testing.T) {
	const apis = "/apis/multicluster.x-k8s.io/v1beta1"
	for _, tc := range []struct{ method, path, want string }{
		{"GET", "/version", "GET"},
		{"GET", "/apis", "GET"},
		{"GET", "/apis/apps/v1", "GET"},
		{"GET", "/api/v1/nodes", "GET nodes"},
		{"GET", "/api/v1/namespaces/shop", "GET namespaces"},
		{"PUT", "/api/v1/namespaces/shop/finalize", "PUT namespaces/finalize"},
		{"POST", "/api/v1/namespaces/shop/services", "POST services"},
		{"PATCH", apis + "/namespaces/shop/serviceimports/db", "PATCH serviceimports"},
		{"PUT", apis + "/namespaces/shop/serviceimports/db/status", "PUT serviceimports/status"},
	} {
		if got := KindOf(tc.method, tc.path); string(got) != tc.want {
			t.Errorf("%s %s is %q, want %q", tc.method, tc.path, got, tc.want)
		}
	}
}

func TestOnlyWritesAreShownForEachChange(t *testing.T) {
	before := Counts{"POST events": 1, "PUT leases": 1, "GET services": 1}
	now := Counts{"POST events": 3, "PUT leases": 9, "GET services": 9, "PATCH endpointslices": 4}
	writes, byKind := now.Since(before).PerEach(4)
	if want := "PATCH endpointslices 1.00, POST events 0.50"; writes != 1.5 || byKind != want {
		t.Errorf("%v writes: %s; want 1.5: %s", writes, byKind, want)
	}
}
