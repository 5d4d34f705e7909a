// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

func wantingImport(annotations map[string]string, kind mcsv1beta1.ServiceImportType, ips ...string) *Import {
	return FromServiceImport(&mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "demo", Annotations: annotations},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type: kind, IPs: ips, Ports: []mcsv1beta1.ServicePort{{Name: "http", Port: 80}},
		},
	})
}

func TestDerivedServices(t *testing.T) {
	const usual, aws = "[derived-scaifns3gd derived-web antrea-mc-web amcs-web]", annotationDerivedAWS
	for _, tc := range []struct {
		annotation, value string
		ips               []string
		want              string
	}{
		{"", "", nil, usual},
		{"", "", []string{"None", "127.0.0.1"}, usual},
		{"", "", []string{"10.42.0.1"}, "[]"},
		{annotationDerived, "../a", nil, usual},
		{
			aws, `[{"cluster":"b","derived-service":"y"},{"derived-service":"x"},{"derived-service":"x"},{}]`,
			nil, "[x y]",
		},
		{aws, "{", nil, usual},
	} {
		imported := wantingImport(map[string]string{tc.annotation: tc.value}, mcsv1beta1.ClusterSetIP, tc.ips...)
		if got := fmt.Sprint(imported.DerivedServices()); got != tc.want {
			t.Errorf("%s %s %v: %s, want %s", tc.annotation, tc.value, tc.ips, got, tc.want)
		}
	}
}

func TestEndpointsStandIn(t *testing.T) {
	slice := func(port int32, states string) *Endpoints { // as for sliceOf
		return sliceOf("", states, discoveryv1.EndpointPort{Name: new("http"), Port: new(port)},
			discoveryv1.EndpointPort{Name: new("admin"), Port: new(int32(1))})
	}
	for name, test := range map[string]struct {
		from []*Endpoints
		want string
	}{
		"none":           {nil, "[] [{http 80 tcp}]"},
		"ready":          {[]*Endpoints{slice(8080, "r"), slice(8080, "nr")}, "[10.1.0.0 10.1.0.1] [{http 8080 tcp}]"},
		"one terminates": {[]*Endpoints{slice(8080, "r"), slice(9090, "ns")}, "[10.1.0.0] [{http 8080 tcp}]"},
		"all terminate":  {[]*Endpoints{slice(9090, "ns")}, "[10.1.0.1] [{http 9090 tcp}]"},
		"not ready":      {[]*Endpoints{slice(9090, "n")}, "[] [{http 80 tcp}]"},
	} {
		imported := wantingImport(nil, mcsv1beta1.ClusterSetIP)
		filled := imported.WithEndpoints(test.from)
		if got := fmt.Sprint(filled.Addrs, filled.Ports); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if !imported.LacksAddress() {
			t.Errorf("%s: the import itself was changed", name)
		}
	}
	headless := wantingImport(nil, mcsv1beta1.Headless)
	if headless.WithEndpoints([]*Endpoints{slice(8080, "r")}) != headless {
		t.Error("a headless import was filled")
	}
}

func TestBookkeepingOfOthers(t *testing.T) {
	const source = annotationSubmarinerNamespace
	for _, tc := range []struct {
		namespace           string
		labels, annotations map[string]string
		want                bool
	}{
		{"demo", nil, nil, false},
		{"demo", map[string]string{source: "demo"}, nil, false},
		{"demo", map[string]string{source: "other"}, nil, true},
		{"demo", nil, map[string]string{source: "other"}, true},
		{"submariner-operator", nil, nil, true},
		{"submariner-k8s-broker", nil, nil, true},
	} {
		imported := FromServiceImport(&mcsv1beta1.ServiceImport{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: tc.namespace, Labels: tc.labels, Annotations: tc.annotations},
			Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP},
		})
		if imported.Refused != tc.want || (imported.Skips[Bookkeeping] == 1) != tc.want {
			t.Errorf("%s %v %v: refused is %v, want %v", tc.namespace, tc.labels, tc.annotations, imported.Refused, tc.want)
		}
	}
}
