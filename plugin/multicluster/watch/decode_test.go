// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// The first two imports are all that DNS needs. Go cannot decode the time of the second one, nor the port of the third.
const (
	goodImport = `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"name":"good","namespace":"demo"},
		"spec":{"type":"ClusterSetIP","ips":["10.42.0.1"],"ports":[{"name":"http","port":80}]}}`
	badTime = `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"name":"time","namespace":"demo"},
		"spec":{"type":"ClusterSetIP","ips":["10.42.0.2"],"ports":[]},
		"status":{"conditions":[{"type":"X","status":"True","reason":"X","message":"","lastTransitionTime":"2026-01-01t00:00:00Z"}]}}`
	badPort = `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"name":"port","namespace":"demo"},
		"spec":{"type":"ClusterSetIP","ips":["10.42.0.3"],"ports":[{"port":"http"}]}}`
)

// answering is the client of an API server that answers every request like this.
func answering(t *testing.T, answer string) *cache.ListWatch {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	c, err := newClients(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c.listImports(ServiceImports, "", "")
}

// decoded expects the three imports, the last of which cannot be decoded.
func decoded(t *testing.T, objects []runtime.Object) {
	t.Helper()
	if len(objects) != 3 {
		t.Fatalf("%d objects", len(objects))
	}
	for i, name := range []string{"good", "time", "port"} {
		got, err := newBench(t, Options{}).imports.item(objects[i])
		if err != nil {
			t.Fatal(err)
		}
		if got.name != name || got.namespace != "demo" || (got.undecodable != nil) != (name == "port") ||
			got.imported.Refused != (name == "port") {
			t.Errorf("%s/%s: %v, want demo/%s", got.namespace, got.name, got.undecodable, name)
		}
	}
}

func TestWhatDNSNeedsOfAnImportIsDecoded(t *testing.T) {
	const text = `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"name":"web","namespace":"demo","resourceVersion":"7",
		"labels":{"a":"b"},"annotations":{"clusterset-dns.github.io/prefer":"cluster"},"uid":"1","creationTimestamp":"2026-01-01T00:00:00Z"},
		"spec":{"type":"Headless","ips":["10.42.0.1"],"ipFamilies":["IPv4"],"trafficDistribution":"PreferClose","sessionAffinity":"None",
		"ports":[{"name":"http","protocol":"UDP","port":80}]},"status":{"clusters":[{"cluster":"east"}]}}`
	got, want := new(unstructured.Unstructured), new(mcsv1beta1.ServiceImport)
	if err := errors.Join(got.UnmarshalJSON([]byte(text)), utiljson.Unmarshal([]byte(text), want)); err != nil {
		t.Fatal(err)
	}
	imported, err := decodeImport(got)
	if err != nil || !reflect.DeepEqual(imported, object.FromServiceImport(want)) {
		t.Errorf("decoded is %+v, %v", imported, err)
	}
}

func TestAnObjectThatDoesNotDecode(t *testing.T) {
	all := []string{goodImport, badTime, badPort}
	list, err := answering(t, `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImportList","metadata":{"resourceVersion":"7"},
		"items":[`+strings.Join(all, ",")+`]}`).ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		t.Fatal(err)
	}
	decoded(t, objects)

	events := `{"type":"ADDED","object":` + strings.Join(all, "}\n"+`{"type":"ADDED","object":`) + "}\n"
	watch, err := answering(t, events).WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	objects = nil
	for event := range watch.ResultChan() {
		objects = append(objects, event.Object)
	}
	decoded(t, objects)
}

func TestAnAnswerThatIsNoListIsAnError(t *testing.T) {
	for _, answer := range []string{"<html>", `{"kind":"ServiceImportList"`} {
		if _, err := answering(t, answer).ListWithContext(t.Context(), metav1.ListOptions{}); err == nil {
			t.Errorf("%s: no error", answer)
		}
	}
}

func TestAnObjectThatDoesNotDecodeIsReportedOnce(t *testing.T) {
	b := newBench(t, Options{})
	x := b.Index()
	bad := importOf("bad", mcsv1beta1.ClusterSetIP, "10.42.0.9")
	bad.Object["spec"].(map[string]any)["ports"] = "none"
	good := importOf("good", mcsv1beta1.ClusterSetIP, "10.42.0.1")
	put(t, b.imports.Replace([]any{good, bad}, "1"))
	put(t, b.slices.Replace(nil, "1"))
	b.expect(t, "good", "the answer of another import is", "10.42.0.1")
	fixed := importOf("bad", mcsv1beta1.ClusterSetIP, "10.42.0.9")
	for _, step := range []struct {
		name        string
		do          func() error
		undecodable bool
		reported    int
		want        string
	}{
		{"it is listed", func() error { return nil }, true, 1, ""},
		{"it changes", func() error { return b.imports.Update(bad) }, true, 1, ""},
		{"it is listed again", func() error { return b.imports.Replace([]any{good, bad}, "2") }, true, 1, ""},
		{"it is corrected", func() error { return b.imports.Update(fixed) }, false, 1, "10.42.0.9"},
		{"it breaks", func() error { return b.imports.Update(bad) }, true, 2, ""},
		{"it is not listed", func() error { return b.imports.Replace([]any{good}, "3") }, false, 2, ""},
		{"it comes back", func() error { return b.imports.Add(bad) }, true, 3, ""},
		{"it is deleted", func() error { return b.imports.Delete(bad) }, false, 3, ""},
		{"it comes again", func() error { return b.imports.Add(bad) }, true, 4, ""},
	} {
		put(t, step.do())
		b.drain()
		undecodable := b.served.Skips[object.Undecodable] == 1
		if got := reply(x, "bad"); got != step.want || undecodable != step.undecodable || b.reported != step.reported {
			t.Errorf("%s: answer %q, undecodable %v, reported %d times", step.name, got, undecodable, b.reported)
		}
	}
	b.close()
	if left := b.served; left.Skips[object.Undecodable]+left.ClusterSetIP+left.Headless > 0 {
		t.Errorf("after the end: %+v", left)
	}
}
