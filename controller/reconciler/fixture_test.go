// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/mcs-api/config/crd"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// newTestReconciler returns a reconciler of cluster east, of which nothing runs.
func newTestReconciler() *Reconciler {
	gate := &informer.FreshnessGate{}
	api, err := local.NewAPI(&rest.Config{}, nil, gate)
	if err != nil {
		panic(err)
	}
	r := New(Config{
		Gatherer: &Gatherer{
			Cluster: "east", Namespace: "clusterset-dns", Applier: &apply.Applier{Clock: clock.RealClock{}},
			Properties: local.NewProperties(nil, nil, ""), Frontends: &local.Frontends{},
			Pods: local.NewPods(nil), Clock: clock.RealClock{},
			Local:   local.New(fake.NewClientset(), gate, "clusterset-dns"),
			Members: member.New(member.Config{}),
			Tracker: memberstate.NewTracker(liveness.Limits{}, clock.RealClock{}, nil, &memberstate.Reporter{}),
		},
		API: api, Gate: gate,
	})
	r.LimitIPs(0)
	return r
}

// definitionsWith answers lists of the two CustomResourceDefinitions, of ServiceImports and of ServiceExports.
func definitionsWith(t *testing.T, serviceImport string, exports ...string) http.HandlerFunc {
	t.Helper()
	definitions := map[string]string{}
	for name, text := range map[string][]byte{
		"serviceexports": crd.ServiceExportCRD,
		"serviceimports": crd.ServiceImportCRD,
	} {
		object, err := yaml.ToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		definitions[name+".multicluster.x-k8s.io"] = strings.TrimSuffix(string(object), "}") +
			`,"status":{"conditions":[{"type":"Established","status":"True"}]}}`
	}
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var items string
		kind := "CustomResourceDefinition"
		switch {
		case r.URL.Query().Get("sendInitialEvents") == "true":
			w.WriteHeader(http.StatusUnprocessableEntity)
			// the client may hang up
			_, _ = io.WriteString(w,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
			return
		case r.URL.Query().Get("watch") == "true":
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		case strings.HasSuffix(r.URL.Path, "/customresourcedefinitions"):
			items = definitions[strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")]
		case strings.HasSuffix(r.URL.Path, "/serviceimports"):
			items, kind = serviceImport, "ServiceImport"
		default:
			items, kind = strings.Join(exports, ","), "ServiceExport"
		}
		group := "multicluster.x-k8s.io/v1beta1"
		if kind == "CustomResourceDefinition" {
			group = "apiextensions.k8s.io/v1"
		}
		_, _ = io.WriteString(w, `{"apiVersion":"`+group+`","kind":"`+kind+
			`List","metadata":{"resourceVersion":"1"},"items":[`+items+`]}`)
	}
}
