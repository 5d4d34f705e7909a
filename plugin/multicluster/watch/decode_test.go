// SPDX-License-Identifier: Apache-2.0

package watch

import (
	golog "log"
	"strings"
	"testing"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

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
