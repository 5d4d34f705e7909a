// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	golog "log"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// logOf returns what is logged until the end of the test.
func logOf(t *testing.T) *strings.Builder {
	logged, before := new(strings.Builder), golog.Writer()
	golog.SetOutput(logged)
	t.Cleanup(func() { golog.SetOutput(before) })
	return logged
}

// TestAFailureIsLoggedOnceAMinute: a watch that expired is no failure, and does not hide the next one.
func TestAFailureIsLoggedOnceAMinute(t *testing.T) {
	logged := logOf(t)
	b := newBench(t, Options{})
	for _, err := range []error{apierrors.NewResourceExpired("too old"), errors.New("refused"), errors.New("reset")} {
		b.imports.asked(err)
	}
	if text := logged.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "serviceimports") || !strings.Contains(text, "refused") {
		t.Errorf("logged is %q", text)
	}
}

func TestAnObjectThatDoesNotDecodeIsReportedOnce(t *testing.T) {
	logged := logOf(t)
	b := newBench(t, Options{})
	fixed := importOf("bad", mcsv1beta1.ClusterSetIP, "10.42.0.9")
	bad := fixed.DeepCopy()
	bad.Object["spec"].(map[string]any)["ports"] = "none"
	good := importOf("good", mcsv1beta1.ClusterSetIP, "10.42.0.1")
	expect := func(changed error, when string, undecodable, reported int, want string) {
		t.Helper()
		b.after(t, changed, "bad", when, want)
		got, lines := b.index.Skips()[record.Undecodable], strings.Count(logged.String(), "serviceimports demo/bad")
		if got != undecodable || lines != reported {
			t.Errorf("%s: %d are undecodable, reported %d times; want %d, %d", when, got, lines, undecodable, reported)
		}
	}
	put(t, b.slices.Replace(nil, "1"))
	expect(b.imports.Replace([]any{good, bad}, "1"), "it is listed", 1, 1, "")
	b.expect(t, "good", "the answer of another import is", "10.42.0.1")
	expect(b.imports.Replace([]any{good, bad}, "2"), "it is listed again", 1, 1, "")
	expect(b.imports.Update(fixed), "it is corrected", 0, 1, "10.42.0.9")
	expect(b.imports.Update(bad), "it breaks", 1, 2, "")
	expect(b.imports.Delete(bad), "it is deleted", 0, 2, "")
}
