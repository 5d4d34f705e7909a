// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
		kind              mcsv1beta1.ServiceImportType
		ips               []string
		want              string
	}{
		{"", "", mcsv1beta1.ClusterSetIP, nil, usual},
		{"", "", mcsv1beta1.ClusterSetIP, []string{"None", "127.0.0.1"}, usual},
		{"", "", mcsv1beta1.ClusterSetIP, []string{"10.42.0.1"}, "[]"},
		{"", "", mcsv1beta1.Headless, nil, "[]"},
		{annotationDerived, "a", mcsv1beta1.ClusterSetIP, nil, "[a]"},
		{annotationDerived, "a", mcsv1beta1.Headless, nil, "[]"},
		{annotationDerived, "../a", mcsv1beta1.ClusterSetIP, nil, usual},
		{annotationDerivedGKE, "gke-mcs-1", mcsv1beta1.ClusterSetIP, nil, "[gke-mcs-1]"},
		{
			aws, `[{"cluster":"b","derived-service":"y"},{"derived-service":"x"},{"derived-service":"x"},{}]`,
			mcsv1beta1.ClusterSetIP, nil, "[x y]",
		},
		{aws, "{", mcsv1beta1.ClusterSetIP, nil, usual},
	} {
		imported := wantingImport(map[string]string{tc.annotation: tc.value}, tc.kind, tc.ips...)
		if got := fmt.Sprint(imported.DerivedServices()); got != tc.want {
			t.Errorf("%s %s %s %v: %s, want %s", tc.annotation, tc.value, tc.kind, tc.ips, got, tc.want)
		}
	}
}

func TestEndpointsStandIn(t *testing.T) {
	slice := func(port int32, conditions discoveryv1.EndpointConditions, address string) *Endpoints {
		return FromEndpointSlice(&discoveryv1.EndpointSlice{
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports: []discoveryv1.EndpointPort{
				{Name: new("http"), Port: new(port)},
				{Name: new("admin"), Port: new(int32(1))},
			},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: conditions}},
		}, false)
	}
	terminates := discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
	notReady := discoveryv1.EndpointConditions{Ready: new(false)}
	ready := discoveryv1.EndpointConditions{}
	for _, tc := range []struct {
		name string
		from []*Endpoints
		want string
	}{
		{"none", nil, "[] [{http 80 tcp}]"},
		{
			"ready",
			[]*Endpoints{slice(8080, ready, "10.1.0.1"), slice(8080, ready, "10.2.0.1")},
			"[10.1.0.1 10.2.0.1] [{http 8080 tcp}]",
		},
		{
			"one terminates",
			[]*Endpoints{slice(8080, ready, "10.1.0.1"), slice(9090, terminates, "10.2.0.1")},
			"[10.1.0.1] [{http 8080 tcp}]",
		},
		{"all terminate", []*Endpoints{slice(9090, terminates, "10.2.0.1")}, "[10.2.0.1] [{http 9090 tcp}]"},
		{"not ready", []*Endpoints{slice(9090, notReady, "10.2.0.1")}, "[] [{http 80 tcp}]"},
	} {
		imported := wantingImport(nil, mcsv1beta1.ClusterSetIP)
		filled := imported.WithEndpoints(tc.from)
		if got := fmt.Sprint(filled.Addrs, filled.Ports); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
		if !imported.LacksAddress() {
			t.Errorf("%s: the import itself was changed", tc.name)
		}
	}
	headless := wantingImport(nil, mcsv1beta1.Headless)
	if headless.WithEndpoints([]*Endpoints{slice(8080, ready, "10.1.0.1")}) != headless {
		t.Error("a headless import was filled")
	}
}

func TestServiceAddresses(t *testing.T) {
	service := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIPs: []string{
		"fd00::1", "None", "", "10.43.0.1",
		"127.0.0.1",
	}}}
	if got := fmt.Sprint(ServiceAddresses(service)); got != "[10.43.0.1 fd00::1]" {
		t.Errorf("the addresses are %s", got)
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
		object := &mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{
			Namespace: tc.namespace, Labels: tc.labels,
			Annotations: tc.annotations,
		}}
		if got := isBookkeeping(object); got != tc.want {
			t.Errorf("%s %v %v: %v, want %v", tc.namespace, tc.labels, tc.annotations, got, tc.want)
		}
	}
}
