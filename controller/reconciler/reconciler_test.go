// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/mcs-api/config/crd"

	"github.com/clusterset-dns/clusterset-dns/controller/local"
)

// definitionsWith answers lists of the two CustomResourceDefinitions, of one
// ServiceImport that cannot be decoded, of ServiceExports, and of nothing else.
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

// TestAnUnreadableExportStopsItsServiceAlone: nothing of the service is written or removed, and the object says why.
func TestAnUnreadableExportStopsItsServiceAlone(t *testing.T) {
	server := httptest.NewServer(definitionsWith(t, "",
		`{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport",`+
			`"metadata":{"namespace":"demo","name":"web","uid":"u","resourceVersion":"1"},"spec":{"exportedLabels":"http"}}`))
	defer server.Close()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()

	events := record.NewFakeRecorder(10)
	// It has no working applier: what is written would be a panic.
	r := newTestReconciler(events)
	err := r.Local.Namespaces.Indexer().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}})
	if err != nil {
		t.Fatal(err)
	}
	if r.API, err = local.NewAPI(&rest.Config{Host: server.URL}, http.DefaultClient, r.Gate); err != nil {
		t.Fatal(err)
	}
	running.Go(func() { _ = r.API.Run(ctx) })
	r.API.WaitForSync(ctx)
	if _, err := r.reconcile(ctx, types.NamespacedName{Namespace: "demo", Name: "web"}, r.Gate.Wait(ctx)); err != nil {
		t.Errorf("got %v", err)
	}
	if len(events.Events) != 1 {
		t.Fatalf("%d Events, want 1", len(events.Events))
	}
	if event := <-events.Events; !strings.HasPrefix(event,
		"Warning Unreadable ServiceExport demo/web cannot be decoded") || !strings.Contains(event, "exportedLabels") {
		t.Errorf("the Event is %q", event)
	}
}
