// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

const (
	exports = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceexports"
	service = "GET /api/v1/namespaces/shop/services/db"
)

// writes are the requests that change something.
func (a *api) writes() []string {
	return slices.DeleteFunc(a.seen(), func(request string) bool { return strings.HasPrefix(request, "GET ") })
}

// TestExportOfNoServiceWritesNothing in none of the clusters, although one of
// them may have it.
func TestExportOfNoServiceWritesNothing(t *testing.T) {
	for _, line := range []string{
		"export db", "export shop/db --contexts east,west",
		"export shop/db --dry-run",
	} {
		server := newAPI(t, answersOfAll(nil), nil)
		_, _, err := invoke(t, server.URL, strings.Fields(line)...)
		if exitStatus(err) != exitFailed || !strings.Contains(err.Error(),
			"context east: Service shop/db does not exist, nothing was exported") {
			t.Errorf("%s: got %v", line, err)
		}
		if writes := server.writes(); len(writes) > 0 {
			t.Errorf("%s: %v", line, writes)
		}
	}
}

// TestExportNeedsNoRightOnServices exports what an application team may not
// read.
func TestExportNeedsNoRightOnServices(t *testing.T) {
	server := newAPI(t, answersOfAll(map[string]string{
		"POST " + exports:        `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"namespace":"shop","name":"db"}}`,
		"GET " + exports + "/db": `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"namespace":"shop","name":"db"},"status":{"conditions":[{"type":"Valid","status":"True"}]}}`,
	}), map[string]int{service: http.StatusForbidden})
	if out, _, err := invoke(t, server.URL, "export", "db"); err != nil || out != "east exports shop/db\n" {
		t.Errorf("got %v: %q", err, out)
	}
}

// TestUnexportNeedsTheRightToDeleteAlone has the rights of an application team.
func TestUnexportNeedsTheRightToDeleteAlone(t *testing.T) {
	const identity, lease = "GET /api/v1/namespaces/kube-system",
		"GET /apis/coordination.k8s.io/v1/namespaces/clusterset-dns/leases/clusterset-dns-heartbeat"
	const slices = "GET /apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"
	namespace, heartbeat := `{"metadata":{"name":"kube-system","uid":"1"}}`, `{"spec":{"holderIdentity":"east"}}`
	for name, test := range map[string]struct {
		answers map[string]string
		denied  []string
		waits   bool
	}{
		"nothing else may be read": {nil, []string{identity, lease, slices}, false},
		"the heartbeat may not":    {map[string]string{identity: namespace}, []string{lease}, false},
		"EndpointSlices may not": {
			map[string]string{identity: namespace, lease: heartbeat},
			[]string{slices},
			false,
		},
		"there is no controller": {map[string]string{identity: namespace}, nil, false},
		"it waits where that may be": {
			map[string]string{identity: namespace, lease: heartbeat, slices: `{"items":[]}`},
			nil, true,
		},
	} {
		answers := answersOfAll(test.answers)
		answers["DELETE "+exports+"/db"] = `{"kind":"Status","status":"Success"}`
		statuses := map[string]int{"GET " + exports + "/db": http.StatusForbidden}
		for _, request := range test.denied {
			statuses[request] = http.StatusForbidden
		}
		server := newAPI(t, answers, statuses)
		out, progress, err := invoke(t, server.URL, "unexport", "db")
		if err != nil || out != "east no longer exports shop/db\n" ||
			strings.Contains(progress, "Not waiting") == test.waits {
			t.Errorf("%s: got %v: %q, %q", name, err, out, progress)
		}
	}
	server := newAPI(t, answersOfAll(nil), nil)
	if out, _, err := invoke(t, server.URL, "unexport", "db"); err != nil || out != "east does not export shop/db\n" {
		t.Errorf("not exported: got %v: %q", err, out)
	}
}
