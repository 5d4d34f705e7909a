// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/accept"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/properties"
)

// TestSourcesByScope: an export that is not for the local cluster, or not accepted there, says why.
func TestSourcesByScope(t *testing.T) {
	web := types.NamespacedName{Namespace: "demo", Name: "web"}
	published := func(clusters string) []*discoveryv1.EndpointSlice {
		serviceExport := &v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: "web", CreationTimestamp: metav1.Date(2026, 1, 1, 0, 0, 0, 0, metav1.Now().Location()),
		}}
		if clusters != "" {
			serviceExport.Annotations = map[string]string{export.AnnotationClusters: clusters}
		}
		view, _, invalid := export.FromService("west", serviceExport, &corev1.Service{Spec: corev1.ServiceSpec{
			ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Port: 80}},
		}}, nil)
		if invalid != nil {
			t.Fatal(invalid)
		}
		slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
		slice.Namespace, slice.Name = "demo", view.Slices[0].Name
		slice.Labels = map[string]string{
			export.LabelService: "web", export.LabelSourceCluster: "west", export.LabelSliceManagedBy: export.Manager,
		}
		slice.Annotations = export.NewEncoder(view).Annotations(&view.Slices[0], nil)
		return []*discoveryv1.EndpointSlice{slice}
	}
	for name, test := range map[string]struct {
		clusters, patterns string // patterns is "-" for none
		accepts            string // of the heartbeat
		accepted           []string
		labelled           bool
		chosen, refused    string
	}{
		"for all":      {patterns: "-"},
		"by id":        {clusters: "east", patterns: "-"},
		"by property":  {clusters: "region=eu", patterns: "-"},
		"for others":   {clusters: "north; region=us", patterns: "-", chosen: "north; region=us"},
		"not accepted": {patterns: "shop", refused: `annotation clusterset-dns.github.io/accept of its Secret has "shop"`},
		"accepted":     {patterns: "demo/web"},
		"not accepted by a flag": {
			patterns: "-", accepted: []string{},
			refused: `--accept has "", and its namespace lacks the label clusterset-dns.github.io/accept=true`,
		},
		"opted in": {patterns: "-", accepted: []string{}, labelled: true},
		"invalid":  {patterns: "A"},
		"invalid, and the last valid ones do not accept it": {
			patterns: "A", accepts: `{"*":"*","west":"shop"}`,
			refused: `the last valid annotation clusterset-dns.github.io/accept of its Secret has "shop"`,
		},
		"invalid, and the last valid ones accept it": {patterns: "A", accepts: `{"*":"","west":"demo"}`},
		"not accepted, by the heartbeat": {
			patterns: "-", accepts: `{"*":"shop,team"}`,
			refused: `--accept has "team", and its namespace lacks the label clusterset-dns.github.io/accept=true`,
		},
		"accepted, by the heartbeat":         {patterns: "-", accepts: `{"*":"demo"}`},
		"accepted, by the Deployment":        {patterns: "-", accepts: `{"*":""}`, accepted: []string{"*"}},
		"a heartbeat that cannot be decoded": {patterns: "-", accepts: "x"},
	} {
		secret := &corev1.Secret{}
		if test.patterns != "-" {
			secret.Annotations = map[string]string{accept.Annotation: test.patterns}
		}
		f := &Facts{
			ID: "east", Accept: test.accepted,
			Heartbeat:  inEurope(),
			Namespaces: map[string]*corev1.Namespace{"demo": {}, "shop": {}},
			Members:    []Member{{ID: "west", Published: published(test.clusters)}},
		}
		f.Members[0].parse(secret)
		f.Heartbeat.Annotations[accept.PublishedAnnotation] = test.accepts
		f.Namespaces["shop"].Labels = map[string]string{accept.Label: "true"}
		if test.labelled {
			f.Namespaces["demo"].Labels = map[string]string{accept.Label: "true"}
		}
		sources := f.Sources(web)
		if len(sources) != 1 {
			t.Fatalf("%s: %d sources", name, len(sources))
		}
		got, reaches := sources[0], test.chosen == "" && test.refused == ""
		if got.Chosen != test.chosen || got.Refused != test.refused || (got.Published != nil) != reaches {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestParse: why the controller rejects a Secret, and which annotation that is about.
func TestParse(t *testing.T) {
	config := "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: \"https://a\"}}]\n" +
		"users: [{name: a, user: {token: x}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
	for name, test := range map[string]struct {
		id, config, key, value string
		want, invalid          string
		unusable               bool
	}{
		"valid":    {id: "west", config: config},
		"id":       {"West", config, member.RankAnnotation, "x", "cluster id \"West\"", "", true},
		"config":   {"west", "x", member.RankAnnotation, "x", "kubeconfig", "", true},
		"ranges":   {"west", config, member.CIDRsAnnotation, "x", "annotation " + member.CIDRsAnnotation, member.CIDRsAnnotation, true},
		"rank":     {"west", config, member.RankAnnotation, "x", "annotation " + member.RankAnnotation, member.RankAnnotation, false},
		"patterns": {"west", config, accept.Annotation, "a/b/c", "annotation " + accept.Annotation + ": pattern", accept.Annotation, false},
	} {
		m := Member{ID: test.id}
		m.parse(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{test.key: test.value}},
			Data:       map[string][]byte{member.KubeconfigKey: []byte(test.config)},
		})
		got := ""
		if m.Refused != nil {
			got = m.Refused.Error()
		}
		if !strings.Contains(got, test.want) || (got == "") != (test.want == "") || m.Invalid != test.invalid ||
			m.unusable() != test.unusable {
			t.Errorf("%s: got %q about %q, unusable %t", name, got, m.Invalid, m.unusable())
		}
	}
}

// inEurope is a heartbeat with a property.
func inEurope() *coordinationv1.Lease {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			properties.Annotation: `{"region":"eu"}`,
		}},
		Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(time.Unix(1e9, 0)))},
	}
	return lease
}
