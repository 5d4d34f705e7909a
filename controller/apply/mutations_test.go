// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

var web = types.NamespacedName{Namespace: "demo", Name: "web"}

// versioned is slices of this controller, each "name@resourceVersion"; one with "!" before it belongs to somebody else.
func versioned(text string) []*discoveryv1.EndpointSlice {
	var result []*discoveryv1.EndpointSlice
	for _, word := range strings.Fields(text) {
		word, foreign := strings.CutPrefix(word, "!")
		slice := &discoveryv1.EndpointSlice{}
		slice.Name, slice.ResourceVersion, _ = strings.Cut(word, "@")
		if !foreign {
			slice.Labels = map[string]string{export.LabelSliceManagedBy: export.Manager}
		}
		result = append(result, slice)
	}
	return result
}

// TestCatchUp: what was written counts until the caches show it, or what came after it.
func TestCatchUp(t *testing.T) {
	for name, test := range map[string]struct {
		written string // and "name@" is gone
		cached  string
		shown   string
		want    string
		ahead   bool
	}{
		"nothing written":                    {"", "a@5", "7", "a@5", false},
		"a new one":                          {"b@9", "a@5", "7", "a@5 b@9", true},
		"a changed one":                      {"a@9", "a@5", "7", "a@9", true},
		"it is shown":                        {"a@9", "a@9", "9", "a@9", false},
		"it is shown, and others not":        {"a@8 b@9", "a@8", "8", "a@8 b@9", true},
		"it was changed later":               {"a@9", "a@11", "11", "a@11", false},
		"it was changed while we look":       {"a@9", "a@11", "7", "a@11", false},
		"it was deleted later":               {"a@9", "", "12", "", false},
		"an update of what was deleted then": {"a@9", "a@5", "12", "a@5", false},
		"more digits are newer":              {"a@10", "a@9", "9", "a@10", true},
		"nobody knows what is shown":         {"a@9", "a@5", "", "a@5", false},
		"no number":                          {"a@x", "a@5", "7", "a@5", false},
		"we deleted it":                      {"a@9 a@", "", "7", "", false},
		"somebody else's":                    {"!a@9", "", "7", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
			a := &Applier{Clock: now}
			for _, slice := range versioned(test.written) {
				known := a.mutations.forUpdate(web, now.Now())
				if slice.ResourceVersion == "" {
					known.noteSlice("", slice.Name, nil)
					continue
				}
				known.noteSlice("", slice.Name, slice)
			}
			existing := Existing{Observed: merge.Observed{Service: web}, EndpointSlices: versioned(test.cached)}
			a.CatchUp(&existing, Versions{EndpointSlices: test.shown})
			ahead := a.mutations.of(web) != nil
			var got []string
			for _, slice := range existing.EndpointSlices {
				got = append(got, slice.Name+"@"+slice.ResourceVersion)
			}
			slices.Sort(got)
			if got := strings.Join(got, " "); got != test.want || ahead != test.ahead {
				t.Errorf("got %q, and ahead is %t", got, ahead)
			}
			// Nor does it count for ever: resourceVersions may have gone back.
			now.SetTime(now.Now().Add(maxMutationAge + 1))
			existing.EndpointSlices = versioned(test.cached)
			a.CatchUp(&existing, Versions{EndpointSlices: test.shown})
			if len(existing.EndpointSlices) != len(versioned(test.cached)) || a.mutations.of(web) != nil {
				t.Errorf("much later there are %d slices, and %v is kept", len(existing.EndpointSlices),
					a.mutations.services)
			}
		})
	}
}

// TestCatchUpOfOneObject does the same for the kinds of which a service has one.
func TestCatchUpOfOneObject(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	a := &Applier{Clock: now}
	known := a.mutations.forUpdate(web, now.Now())
	known.serviceImport, known.serviceExport, known.derivedService = &v1beta1.ServiceImport{}, &v1beta1.ServiceExport{},
		&corev1.Service{}
	known.serviceImport.ResourceVersion, known.serviceExport.ResourceVersion,
		known.derivedService.ResourceVersion = "21", "22", "23"
	cached := &v1beta1.ServiceExport{}
	cached.ResourceVersion = "10"
	look := func(version string) (text string, ahead bool) {
		existing := Existing{Observed: merge.Observed{Service: web, ServiceExport: cached}}
		a.CatchUp(&existing, Versions{ServiceImports: version, ServiceExports: version, Services: version})
		ahead = a.mutations.of(web) != nil
		observed := existing.Observed
		if observed.ServiceImport != nil {
			text += "import " + observed.ServiceImport.ResourceVersion + " "
		}
		if observed.DerivedService != nil {
			text += "derived " + observed.DerivedService.ResourceVersion + " "
		}
		return text + "export " + observed.ServiceExport.ResourceVersion, ahead
	}
	for _, step := range []struct {
		version, want string
		ahead         bool
	}{
		{"20", "import 21 derived 23 export 22", true},
		{"22", "derived 23 export 10", true}, // the import is gone, and the export another's
		{"23", "export 10", false},
		{"20", "export 10", false},
	} {
		if got, ahead := look(step.version); got != step.want || ahead != step.ahead {
			t.Errorf("at %s: got %q, and ahead is %t", step.version, got, ahead)
		}
	}
	a.mutations.forUpdate(web, now.Now())
	if a.Forget(web); len(a.mutations.services) > 0 {
		t.Error("a service is not forgotten")
	}
}

// TestEcho: what the caches show of an object is unreported, unless it is what was
// written. An etcd that was restored uses resourceVersions again.
func TestEcho(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	slice := func(version string, change func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
		result := versioned("a@" + version)[0]
		change(result)
		return result
	}
	nothing := func(*discoveryv1.EndpointSlice) {}
	for name, test := range map[string]struct {
		shown         metav1.Object
		want, forgets bool
	}{
		"the last write":                {slice("9", nothing), true, true},
		"the write before":              {slice("8", nothing), true, false},
		"an older version":              {slice("7", nothing), false, false},
		"a newer version":               {slice("10", nothing), false, false},
		"another object of the version": {slice("9", func(s *discoveryv1.EndpointSlice) { s.UID = "2" }), false, false},
		"other content of the version": {slice("9",
			func(s *discoveryv1.EndpointSlice) { s.Ports = make([]discoveryv1.EndpointPort, 1) }), false, false},
		"another name": {versioned("b@9")[0], false, false},
		"another kind": {&corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Name:            "a",
			ResourceVersion: "9",
		}}, false, false},
	} {
		a := &Applier{Clock: now}
		known := a.mutations.forUpdate(web, now.Now())
		known.noteSlice("", "a", versioned("a@9")[0])
		known.echoes = []echo{newEcho(versioned("a@8")[0]), newEcho(versioned("a@9")[0])}
		if got := a.Echo(web, test.shown); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
		if forgot := a.mutations.of(web) == nil; forgot != test.forgets {
			t.Errorf("%s: it is forgotten: %t", name, forgot)
		}
		if late := a.Behind(0); (len(late) == 0) != test.forgets || len(a.Behind(time.Second)) > 0 {
			t.Errorf("%s: the caches are behind of %v", name, late)
		}
	}
}

// TestDeletedSlices: a slice that was deleted does not exist any more, also while
// the caches show it. One whose deletion failed does.
func TestDeletedSlices(t *testing.T) {
	p := slicePass(&sliceServer{refused: []string{"west-2"}}, merge.Observed{ServiceImport: ownImport()},
		"west-1 west-2", "")
	for _, slice := range p.existing.EndpointSlices {
		slice.UID = types.UID(slice.Name)
	}
	if err := p.removeRest(t.Context(), nil); err == nil {
		t.Error("a deletion that is refused is no error")
	}
	again := slicesOf("west-1")[0]
	again.UID = "again"
	for _, step := range []struct {
		cached []*discoveryv1.EndpointSlice
		want   int
	}{{p.existing.EndpointSlices, 1}, {append(slices.Clone(p.existing.EndpointSlices), again), 2}, {nil, 0}} {
		existing := Existing{Observed: p.observed, EndpointSlices: slices.Clone(step.cached)}
		p.CatchUp(&existing, Versions{})
		if got := existing.EndpointSlices; len(got) != step.want || slices.Contains(got, p.existing.EndpointSlices[0]) {
			t.Errorf("%d cached: got %v", len(step.cached), got)
		}
	}
	if p.mutations.of(web) != nil {
		t.Error("the deletion is remembered although the caches show it")
	}
}
