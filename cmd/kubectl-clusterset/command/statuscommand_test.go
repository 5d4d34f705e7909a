// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestStatusWaits returns what was seen last, and fails with the reason if the
// time was up.
func TestStatusWaits(t *testing.T) {
	ready := func(reason string) map[string]string {
		return map[string]string{
			"GET /apis/coordination.k8s.io/v1/namespaces/clusterset-dns/leases": fmt.Sprintf(
				`{"items":[{"metadata":{"name":"clusterset-dns-heartbeat"},"spec":{"holderIdentity":"east","renewTime":%q}}]}`,
				time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")),
			"GET /apis/multicluster.x-k8s.io/v1beta1/serviceimports": fmt.Sprintf(
				`{"kind":"ServiceImportList","items":[{"metadata":{"namespace":"shop","name":"db","labels":`+
					`{"app.kubernetes.io/managed-by":"clusterset-controller.clusterset-dns.github.io"}},`+
					`"status":{"conditions":[{"type":"Ready","status":%q,"reason":%q,"message":"no IP yet"}]}}]}`,
				map[bool]string{true: "True", false: "False"}[reason == "Ready"], reason),
		}
	}
	for reason, want := range map[string]string{
		"Ready": "", "Pending": "import shop/db is not ready (Pending): no IP yet",
	} {
		server := newAPI(t, answersOfAll(ready(reason)), nil)
		out, _, err := invoke(t, server.URL, "status", "--wait", "--timeout", "1s")
		if !strings.Contains(out, "shop/db") || want == "" && err != nil ||
			want != "" && (exitStatus(err) != exitFailed || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v\n%s", reason, err, out)
		}
	}
	if _, _, err := invoke(t, "http://127.0.0.1:1", "status", "--timeout", "1s"); exitStatus(err) != exitUsage {
		t.Errorf("--timeout alone: %v", err)
	}
}
