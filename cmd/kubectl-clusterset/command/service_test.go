// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestExports: no cluster exports a Service that one of them lacks. An application team needs no right to read Services for an
// export, and only the right to delete it to withdraw it.
func TestExports(t *testing.T) {
	const (
		served = "GET /apis/multicluster.x-k8s.io/v1beta1"
		all    = " /apis/multicluster.x-k8s.io/v1beta1/namespaces/shop/serviceexports"
		db     = all + "/db"
		object = `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"namespace":"shop","name":"db"}`
		reads  = "GET /api/v1/namespaces/shop/services/db"
		lacks  = "context east: Service shop/db does not exist, nothing was exported"
	)
	for _, test := range []struct {
		line    string
		answers map[string]string
		want    string // the output, or a part of the error
		asks    []string
	}{
		{"export shop/db", nil, lacks, []string{reads}},
		{"export shop/db --contexts east,west", nil, lacks, []string{reads}},
		{"export shop/db --dry-run", nil, lacks, []string{reads}},
		{"export shop/db", map[string]string{
			reads: "", "POST" + all: object + "}", "GET" + db: object + `,"status":{"conditions":[{"type":"Valid","status":"True"}]}}`,
		}, "east exports shop/db\n", []string{reads, served, "POST" + all, served, "GET" + db}},
		{"unexport shop/db", map[string]string{"DELETE" + db: `{"kind":"Status","status":"Success"}`}, "east no longer exports shop/db\n", []string{served, "DELETE" + db}},
		{"unexport shop/db", nil, "east does not export shop/db\n", []string{served, "DELETE" + db}},
	} {
		server := newAPI(t, test.answers)
		out, _, err := invoke(t, server.URL, strings.Fields(test.line)...)
		if !strings.HasPrefix(out+fmt.Sprint(err), test.want) || failed(err) != (test.want == lacks) || !slices.Equal(server.seen(), test.asks) {
			t.Errorf("%s: got %v: %q, and asked %q", test.line, err, out, server.seen())
		}
	}
}
