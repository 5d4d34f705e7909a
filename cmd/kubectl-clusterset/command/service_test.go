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

// TestExportOfNoServiceWritesNothing in none of the clusters, although one of
// them may have it.
func TestExportOfNoServiceWritesNothing(t *testing.T) {
	for _, line := range []string{
		"export db", "export shop/db --contexts east,west",
		"export shop/db --dry-run",
	} {
		server := newAPI(t, nil, nil)
		_, _, err := invoke(t, server.URL, strings.Fields(line)...)
		if exitStatus(err) != exitFailed || !strings.Contains(err.Error(),
			"context east: Service shop/db does not exist, nothing was exported") {
			t.Errorf("%s: got %v", line, err)
		}
		if seen := server.seen(); slices.ContainsFunc(seen, func(request string) bool { return !strings.HasPrefix(request, "GET ") }) {
			t.Errorf("%s: %v", line, seen)
		}
	}
}

// TestExportNeedsNoRightOnServices exports what an application team may not
// read.
func TestExportNeedsNoRightOnServices(t *testing.T) {
	server := newAPI(t, map[string]string{
		"POST " + exports:        `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"namespace":"shop","name":"db"}}`,
		"GET " + exports + "/db": `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"namespace":"shop","name":"db"},"status":{"conditions":[{"type":"Valid","status":"True"}]}}`,
	}, map[string]int{service: http.StatusForbidden})
	if out, _, err := invoke(t, server.URL, "export", "db"); err != nil || out != "east exports shop/db\n" {
		t.Errorf("got %v: %q", err, out)
	}
}

// TestUnexportNeedsTheRightToDeleteAlone has the rights of an application team.
func TestUnexportNeedsTheRightToDeleteAlone(t *testing.T) {
	for deletes, want := range map[bool]string{true: "east no longer exports shop/db\n", false: "east does not export shop/db\n"} {
		answers := map[string]string{}
		if deletes {
			answers["DELETE "+exports+"/db"] = `{"kind":"Status","status":"Success"}`
		}
		server := newAPI(t, answers, nil)
		if out, _, err := invoke(t, server.URL, "unexport", "db"); err != nil || out != want {
			t.Errorf("got %v: %q", err, out)
		}
		for _, asked := range server.seen() {
			if asked != "GET /apis/multicluster.x-k8s.io/v1beta1" && asked != "DELETE "+exports+"/db" {
				t.Errorf("it asked %s", asked)
			}
		}
	}
}
