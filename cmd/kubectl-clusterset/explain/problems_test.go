// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

var service = types.NamespacedName{Namespace: "shop", Name: "db"}

// newFacts is east, which exports a headless service and imports it. Each of
// its endpoints is an address and the conditions that it has.
func newFacts(endpoints ...string) *facts.Facts {
	object := metav1.ObjectMeta{Namespace: "shop", Name: "db", Labels: map[string]string{
		export.LabelManagedBy: export.Manager, export.LabelSliceManagedBy: export.Manager,
		export.LabelService: "db", export.LabelSourceCluster: "east",
	}}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: object, AddressType: discoveryv1.AddressTypeIPv4}
	for _, text := range endpoints {
		words := strings.Fields(text)
		slice.Endpoints = append(slice.Endpoints,
			discoveryv1.Endpoint{Addresses: words[:1], Conditions: discoveryv1.EndpointConditions{
				Ready: new(slices.Contains(words, "ready")), Serving: new(slices.Contains(words, "serving")),
				Terminating: new(slices.Contains(words, "terminating")),
			}})
	}
	of := object
	of.Labels = map[string]string{export.LabelKubernetesService: "db"}
	return &facts.Facts{
		ID: "east", Context: "east", System: "clusterset-dns", Now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Namespaces: map[string]*corev1.Namespace{"shop": {}},
		Exports: []v1beta1.ServiceExport{{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "db",
			CreationTimestamp: metav1.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
		}}},
		Services: []corev1.Service{{ObjectMeta: of, Spec: corev1.ServiceSpec{
			Type:      corev1.ServiceTypeClusterIP,
			ClusterIP: corev1.ClusterIPNone,
		}}},
		Imports: []v1beta1.ServiceImport{{
			ObjectMeta: object, Spec: v1beta1.ServiceImportSpec{Type: v1beta1.Headless},
			Status: v1beta1.ServiceImportStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: "True"}}},
		}},
		Slices: []*discoveryv1.EndpointSlice{slice},
	}
}

// TestNoAnswer tells a name that should not exist from one that DNS lacks.
func TestNoAnswer(t *testing.T) {
	ready, last := "10.0.0.1 ready serving", "10.0.0.2 serving terminating"
	for name, test := range map[string]struct {
		facts  *facts.Facts
		change func(*facts.Facts)
		got    string // what DNS answers: NXDOMAIN, or addresses
		want   string // what is said of it
	}{
		"headless, and nobody serves": {
			facts: newFacts("10.0.0.1"), got: "NXDOMAIN",
			want: "correct: no endpoint is ready",
		},
		"headless, and there is no endpoint": {
			facts: newFacts(), got: "NXDOMAIN",
			want: "correct: no endpoint is ready",
		},
		"headless, and somebody serves": {
			facts: newFacts(ready), got: "NXDOMAIN",
			want: "WRONG, expected 10.0.0.1",
		},
		"headless, and the last one terminates": {
			facts: newFacts(last), got: "NXDOMAIN",
			want: "WRONG, expected 10.0.0.2",
		},
		"the last one, which terminates": {facts: newFacts(last), got: "10.0.0.2", want: "correct"},
		"one that terminates beside one that does not": {
			facts: newFacts(ready, last), got: "10.0.0.1 10.0.0.2", want: "WRONG, expected 10.0.0.1",
		},
		"an IP": {
			facts: newFacts(), got: "NXDOMAIN", want: "WRONG, expected 10.1.0.1",
			change: func(f *facts.Facts) {
				f.Imports[0].Spec = v1beta1.ServiceImportSpec{Type: v1beta1.ClusterSetIP, IPs: []string{"10.1.0.1"}}
			},
		},
		"an IP that is not there yet": {
			facts: newFacts(), got: "NXDOMAIN", want: "WRONG, expected no records",
			change: func(f *facts.Facts) { f.Imports[0].Spec.Type = v1beta1.ClusterSetIP },
		},
		"an IP without endpoints, which DNS is told to leave out": {
			facts: newFacts("10.0.0.1"), got: "NXDOMAIN", want: "correct: no endpoint is ready",
			change: func(f *facts.Facts) {
				f.Imports[0].Spec = v1beta1.ServiceImportSpec{Type: v1beta1.ClusterSetIP, IPs: []string{"10.1.0.1"}}
				f.Corefile = ". {\nmulticluster clusterset.local {\nignore empty_service\n}\n}"
			},
		},
		"no import": {
			facts: newFacts(), got: "NXDOMAIN", want: "correct: not imported here",
			change: func(f *facts.Facts) { f.Imports = nil },
		},
	} {
		if test.change != nil {
			test.change(test.facts)
		}
		e := Of(test.facts, service, DefaultZone)
		answer := dns.Answer{Name: e.Name, Type: "A", Rcode: "NXDOMAIN"}
		if test.got != "NXDOMAIN" {
			answer.Rcode, answer.Records = "NOERROR", strings.Fields(test.got)
		}
		e.Answered("a server", answer)
		var text strings.Builder
		if err := e.Text(&text, false); err != nil {
			t.Error(err)
		}
		if want := ": " + test.got + " (" + test.want + ")\n"; !strings.Contains(text.String(), want) {
			t.Errorf("%s: it lacks %q:\n%s", name, want, text.String())
		}
	}
}

// TestProblems holds what is said of a service, and the commands for it.
func TestProblems(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*facts.Facts)
		zone   string
		want   []string
	}{
		"no endpoint is ready": {
			want: []string{"No endpoint of db is ready in any cluster. > kubectl --context east -n shop get pods"},
		},
		"it drains itself": {
			change: func(f *facts.Facts) {
				f.System = "mcs"
				f.Namespaces["mcs"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{memberstate.AnnotationDrain: "true"}}}
			},
			want: []string{
				"east is drained. To return traffic to it: > kubectl clusterset undrain east --contexts east --system-namespace mcs",
				"No endpoint of db is ready in any cluster. > kubectl --context east -n shop get pods",
			},
		},
		"an import of another one": {
			change: func(f *facts.Facts) { f.Imports[0].Labels = nil },
			want: []string{"The controller does not manage ServiceImport shop/db in east, so nothing is imported. > " +
				"Let the controller adopt it with its IP: `kubectl --context east -n shop annotate serviceimport db clusterset-dns.github.io/adopt=true`. If it is not used, delete it: `kubectl --context east -n shop delete serviceimport db`."},
		},
		"no Service": {
			change: func(f *facts.Facts) { f.Services, f.Imports, f.Slices = nil, nil, nil },
			want:   []string{"east does not export it: Service shop/db does not exist. Create it, or delete the ServiceExport. > Create the Service, or withdraw the export: `kubectl clusterset unexport shop/db --contexts east`."},
		},
		"nobody exports it": {
			change: func(f *facts.Facts) { f.Exports, f.Imports, f.Slices = nil, nil, nil },
			want:   []string{"Neither east nor any of its members exports shop/db. The Service exists in east, but has no ServiceExport. > kubectl clusterset export shop/db --contexts east"},
		},
		"a namespace of another set": {
			change: func(f *facts.Facts) {
				f.Exports, f.Imports, f.Slices = nil, nil, nil
				f.Namespaces["shop"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
					Labels: map[string]string{export.LabelSet: "blue"},
				}}
			},
			want: []string{`Namespace "shop" in east belongs to cluster set blue. The controller in namespace clusterset-dns ` +
				`takes care of the default cluster set. > Name the namespace of the controller of that set with ` +
				`--system-namespace, or change the label clusterset-dns.github.io/clusterset.`},
		},
		"no namespace": {
			change: func(f *facts.Facts) { f.Namespaces, f.Imports = nil, nil },
			want:   []string{`Namespace "shop" does not exist in east. Services are imported only into existing namespaces. > kubectl --context east create namespace shop`},
		},
		"a member that is not read, in another zone and namespace": {
			change: func(f *facts.Facts) {
				f.System, f.Slices[0].Endpoints[0].Conditions = "mcs", discoveryv1.EndpointConditions{}
				f.Members = []facts.Member{{ID: "west", Unread: errors.New("no route to host")}}
			},
			zone: "example.set",
			want: []string{"The slices of west could not be read, so only its imported endpoints are known: no route to host > " +
				"kubectl clusterset check --contexts east --zone example.set --system-namespace mcs"},
		},
		"an annotation of a member that is not valid": {
			change: func(f *facts.Facts) {
				f.Slices[0].Endpoints[0].Conditions = discoveryv1.EndpointConditions{}
				f.Members = []facts.Member{{
					ID: "west", Secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "member-west"}},
					Refused: errors.New("no patterns"), Invalid: accept.Annotation,
				}}
			},
			want: []string{"The controller of east rejects Secret member-west: no patterns. The last valid value stays in effect. > " +
				"kubectl --context east -n clusterset-dns annotate secret member-west 'clusterset-dns.github.io/accept=<namespaces and namespace/service, separated by commas>' --overwrite"},
		},
		"ranges of a member that are not valid": {
			change: func(f *facts.Facts) {
				f.Slices[0].Endpoints[0].Conditions = discoveryv1.EndpointConditions{}
				err := errors.New("no ranges")
				f.Members = []facts.Member{{
					ID: "west", Secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "member-west"}},
					Refused: err, Invalid: member.CIDRsAnnotation, Unread: err,
				}}
			},
			want: []string{"The controller of east rejects Secret member-west: no ranges. The last valid value stays in effect. > " +
				"kubectl --context east -n clusterset-dns annotate secret member-west 'clusterset-dns.github.io/cidrs=<ranges of its pods>' --overwrite"},
		},
	} {
		f, zone := newFacts("10.0.0.1"), DefaultZone
		if test.change != nil {
			test.change(f)
		}
		if test.zone != "" {
			zone = test.zone
		}
		var got []string
		for _, problem := range Of(f, service, zone).Problems {
			got = append(got, problem.What+" > "+problem.Fix)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}
