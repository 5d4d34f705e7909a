// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	golog "log"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// TestAnImportIsDecoded: DNS needs only the spec and some metadata. Go's types cannot decode the time in the status.
func TestAnImportIsDecoded(t *testing.T) {
	const known = `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"name":"web","namespace":"demo","resourceVersion":"7",
		"labels":{"a":"b"},"annotations":{"clusterset-dns.github.io/prefer":"cluster"},"uid":"1","creationTimestamp":"2026-01-01T00:00:00Z"},
		"spec":{"type":"Headless","ips":["10.42.0.1"],"ipFamilies":["IPv4"],"trafficDistribution":"PreferClose",
		"sessionAffinity":"None","ports":[{"name":"http","protocol":"UDP","port":80}]}`
	const status = `,"status":{"conditions":[{"type":"X","lastTransitionTime":"2026-01-01t00:00:00Z"}]}`
	raw, typed := new(unstructured.Unstructured), new(mcsv1beta1.ServiceImport)
	if err := errors.Join(raw.UnmarshalJSON([]byte(known+status+"}")), utiljson.Unmarshal([]byte(known+"}"), typed)); err != nil {
		t.Fatal(err)
	}
	got := newBench(t, Options{}).imports.item(raw)
	if got.name != "web" || got.namespace != "demo" || got.undecodable != nil ||
		!reflect.DeepEqual(got.content, any(record.FromServiceImport(typed))) {
		t.Errorf("the import is %+v", got)
	}
}

func TestAnObjectThatDoesNotDecodeIsReportedOnce(t *testing.T) {
	var logged strings.Builder
	before := golog.Writer()
	golog.SetOutput(&logged)
	t.Cleanup(func() { golog.SetOutput(before) })
	b := newBench(t, Options{})
	fixed := importOf("bad", mcsv1beta1.ClusterSetIP, "10.42.0.9")
	bad := fixed.DeepCopy()
	bad.Object["spec"].(map[string]any)["ports"] = "none"
	good := importOf("good", mcsv1beta1.ClusterSetIP, "10.42.0.1")
	expect := func(changed error, when string, undecodable, reported int, want string) {
		t.Helper()
		b.after(t, changed, "bad", when, want)
		got, lines := b.index.Totals().Skips[record.Undecodable], strings.Count(logged.String(), "serviceimports demo/bad")
		if got != undecodable || lines != reported {
			t.Errorf("%s: %d are undecodable, reported %d times; want %d, %d", when, got, lines, undecodable, reported)
		}
	}
	put(t, b.slices.Replace(nil, "1"))
	expect(b.imports.Replace([]any{good, bad}, "1"), "it is listed", 1, 1, "")
	b.expect(t, "good", "the answer of another import is", "10.42.0.1")
	expect(b.imports.Update(bad), "it changes", 1, 1, "")
	expect(b.imports.Replace([]any{good, bad}, "2"), "it is listed again", 1, 1, "")
	expect(b.imports.Update(fixed), "it is corrected", 0, 1, "10.42.0.9")
	expect(b.imports.Update(bad), "it breaks", 1, 2, "")
	expect(b.imports.Replace([]any{good}, "3"), "it is not listed", 0, 2, "")
	expect(b.imports.Add(bad), "it comes back", 1, 3, "")
	expect(b.imports.Delete(bad), "it is deleted", 0, 3, "")
	expect(b.imports.Add(bad), "it comes again", 1, 4, "")
}
