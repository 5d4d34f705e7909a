// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// TestScope: the part of each cluster in a name, and the rule that decided.
func TestScope(t *testing.T) {
	published := func(clusters string) []*discoveryv1.EndpointSlice {
		serviceExport := &v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name,
			CreationTimestamp: metav1.Date(2026, 1, 1, 0, 0, 0, 0, metav1.Now().Location()),
		}}
		if clusters != "" {
			serviceExport.Annotations = map[string]string{export.AnnotationClusters: clusters}
		}
		view, _, _ := export.FromService("west", serviceExport, &corev1.Service{Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80}},
		}}, nil)
		slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
		slice.Namespace, slice.Name = service.Namespace, view.Slices[0].Name
		slice.Labels = map[string]string{
			export.LabelService: service.Name, export.LabelSourceCluster: "west", export.LabelSliceManagedBy: export.Manager,
		}
		slice.Annotations = export.NewEncoder(view).Annotations(&view.Slices[0], nil)
		return []*discoveryv1.EndpointSlice{slice}
	}
	for name, test := range map[string]struct {
		clusters, patterns string // patterns is "-" for none
		accepted           []string
		state, problem     string
	}{
		"not chosen": {
			"north", "-", nil, "not chosen: it is for north",
			`The export of west is not for east: it is for "north" (annotation clusterset-dns.github.io/clusters). > ` +
				`kubectl --context <context of west> -n shop annotate serviceexport db 'clusterset-dns.github.io/clusters=north; east' --overwrite`,
		},
		"refused": {
			"", "team", nil, `refused: annotation clusterset-dns.github.io/accept of its Secret has "team"`,
			`east does not accept shop/db of west: annotation clusterset-dns.github.io/accept of its Secret has "team". > ` +
				`kubectl --context east -n clusterset-dns annotate secret member-west clusterset-dns.github.io/accept=team,shop/db --overwrite`,
		},
		"refused by the flag": {
			"", "-",
			[]string{"team"},
			`refused: --accept has "team", and its namespace lacks the label clusterset-dns.github.io/accept=true`,
			`east does not accept shop/db of west: --accept has "team", and its namespace lacks the label ` +
				`clusterset-dns.github.io/accept=true. > kubectl --context east label namespace shop clusterset-dns.github.io/accept=true`,
		},
	} {
		f := newFacts()
		f.Exports, f.Imports, f.Slices, f.Accept = nil, nil, nil, test.accepted
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "member-west"}}
		if test.patterns != "-" {
			secret.Annotations = map[string]string{accept.Annotation: test.patterns}
		}
		f.Members = []facts.Member{{ID: "west", Secret: secret, Published: published(test.clusters)}}
		e := Of(f, service, DefaultZone)
		if len(e.Exports) != 1 || e.Exports[0].State != test.state {
			t.Errorf("%s: exports %+v", name, e.Exports)
		}
		if len(e.Problems) != 1 || e.Problems[0].What+" > "+e.Problems[0].Fix != test.problem {
			t.Errorf("%s: problems\n%+v\nwant\n%s", name, e.Problems, test.problem)
		}
		if !strings.Contains(e.Summary, "because no export is for this cluster and accepted") {
			t.Errorf("%s: %s", name, e.Summary)
		}
	}

	f := newFacts("10.0.0.1 ready serving")
	f.Exports[0].Status.Conditions = []metav1.Condition{{
		Type: merge.ConditionReach, Status: "False", Reason: merge.ReasonRefused, Message: "These members do not accept it: west.",
	}}
	e := Of(f, service, DefaultZone)
	if len(e.Problems) != 1 ||
		e.Problems[0].What != "The export of east does not reach all members. These members do not accept it: west." {
		t.Errorf("problems %+v", e.Problems)
	}
}
