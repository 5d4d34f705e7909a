// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

func TestExportConditions(t *testing.T) {
	const (
		see     = "The service is not exported: see condition Valid."
		ready   = "Ready True Ready The service is exported.\nConflict False NoConflicts " + agree
		partial = `The Service can be exported. ServiceExport demo/web: label "k8s.io/a" is left out, ` +
			`EndpointSlice demo/web-1: ::1 is not the address of a pod.`
	)
	for name, test := range map[string]struct {
		change func(*Observed)
		own    bool
		want   string
	}{
		"valid": {func(*Observed) {}, true, "Valid True Valid The Service can be exported.\n" + ready},
		"valid with parts left out": {func(o *Observed) {
			o.Problems = []export.Problem{
				{Reason: export.ReasonBadMetadata, Object: "ServiceExport demo/web", Message: `label "k8s.io/a" is left out`},
				{Reason: export.ReasonBadAddress, Object: "EndpointSlice demo/web-1", Message: "::1 is not the address of a pod"},
			}
		}, true, "Valid True Valid " + partial + "\n" + ready},
		"valid with many parts left out": {func(o *Observed) {
			for range 12 {
				o.Problems = append(o.Problems, export.Problem{Object: "o", Message: "m"})
			}
		}, true, "Valid True Valid The Service can be exported." + strings.Repeat(" o: m,", 10) + " 2 more.\n" + ready},
		"no Service": {func(o *Observed) {
			o.Invalid = &export.Invalid{Reason: "NoService", Message: "Service demo/web does not exist."}
		}, false, "Valid False NoService Service demo/web does not exist.\nReady False Failed " + see + "\nConflict False NoConflicts " + see},
		"no export": {func(o *Observed) { o.ServiceExport = nil }, false, ""},
	} {
		observed := newObserved("east")
		test.change(&observed)
		contributions := contribute(newView("west", 1, "80/TCP", ""))
		if test.own {
			contributions = append(contributions, contribute(newView("east", 2, "80/TCP", ""))...)
		}
		var got []string
		for _, c := range Merge(observed, contributions).ExportConditions {
			got = append(got, fmt.Sprintf("%s %s %s %s", c.Type, c.Status, c.Reason, c.Message))
		}
		diff(t, name, strings.Join(got, "\n"), test.want)
	}
}
