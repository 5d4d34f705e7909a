// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestPorts: the ports of the import, of the derived Service and of each cluster's slices. Endpoints listen on the number
// of the port plus 8000.
func TestPorts(t *testing.T) {
	for name, test := range map[string]struct {
		exports []string // ports of cluster-1, cluster-2, ... by age
		want    string   // ports of the import
		slices  []string // ports of the clusters' slices
	}{
		"one name, two numbers: only those with the number are reached": {[]string{"http:80/TCP", "http:81/TCP"}, "http:80/TCP", []string{"http:8080/TCP", ""}},
		"one number, two names: the oldest's name everywhere":           {[]string{"http:80/TCP", "web:80/TCP"}, "http:80/TCP", []string{"http:8080/TCP", "http:8080/TCP"}},
		"a number that only a third cluster can name":                   {[]string{"http:80/TCP", "http:81/TCP", "alt:81/TCP"}, "http:80/TCP alt:81/TCP", []string{"http:8080/TCP", "alt:8081/TCP", "alt:8081/TCP"}},
		"unnamed in a union of several":                                 {[]string{"80/TCP", "53/UDP", "http:90/TCP"}, "tcp-80:80/TCP udp-53:53/UDP http:90/TCP", []string{"tcp-80:8080/TCP", "udp-53:8053/UDP", "http:8090/TCP"}},
		"named, then unnamed":                                           {[]string{"http:80/TCP", "80/TCP"}, "http:80/TCP", []string{"http:8080/TCP", "http:8080/TCP"}},
		"unnamed, and another port with the name that it would get": {
			[]string{"80/TCP", "tcp-80:81/TCP tcp-80-2:82/TCP"},
			"tcp-80-3:80/TCP tcp-80:81/TCP tcp-80-2:82/TCP",
			[]string{"tcp-80-3:8080/TCP", "tcp-80:8081/TCP tcp-80-2:8082/TCP"},
		},
		"application protocol of the oldest":                {[]string{"http:80/TCP(http)", "http:80/TCP(kubernetes.io/h2c)", "http:80/TCP"}, "http:80/TCP(http)", []string{"http:8080/TCP(http)", "http:8080/TCP(http)", "http:8080/TCP(http)"}},
		"no application protocol where the oldest has none": {[]string{"http:80/TCP", "http:80/TCP(http)"}, "http:80/TCP", []string{"http:8080/TCP", "http:8080/TCP"}},
	} {
		t.Run(name, func(t *testing.T) {
			var views []*export.View
			for i, ports := range test.exports {
				views = append(views, newView(fmt.Sprintf("cluster-%d", i+1), i+1, ports, fmt.Sprintf("10.%d.0.1", i)))
			}
			result := Merge(newObserved("cluster-1"), contribute(views...))
			diff(t, "import", importPorts(result.ServiceImport), test.want)
			for i, want := range test.slices {
				cluster := fmt.Sprintf("cluster-%d", i+1)
				diff(t, "slice of "+cluster, endpointPorts(export.SlicesOf(cluster, result.EndpointSlices)[0]), want)
			}
		})
	}
}

// TestManyPorts: an import has at most maxPorts ports, those of the first exports, and the condition says how many are
// left out.
func TestManyPorts(t *testing.T) {
	var views []*export.View
	for c := range 5 {
		var ports []string
		for p := range 100 {
			ports = append(ports, fmt.Sprintf("p%d-%d:%d/TCP", c, p, 1+100*c+p))
		}
		views = append(views, newView(fmt.Sprint("c", c), 1+c/2, strings.Join(ports, " "), "10.1.0.1"))
	}
	result := Merge(newObserved("c0"), contribute(views...))
	first := Merge(newObserved("c0"), contribute(views[:3]...)).ServiceImport
	diff(t, "ports", importPorts(result.ServiceImport), importPorts(first))
	diff(t, "number of ports", len(first.Spec.Ports), maxPorts)
	served := 0
	for _, slice := range result.EndpointSlices {
		served += len(slice.Ports)
	}
	diff(t, "ports of all slices", served, maxPorts)
	message := conditionOf(result.ExportConditions, "Conflict").Message
	if !strings.HasSuffix(message, " Ports not served, because an import has at most 300: 200.") {
		t.Errorf("message %s", message)
	}
}

func text(name string, number int32, protocol corev1.Protocol, app *string) string {
	return portText(export.Port{Name: name, Number: number, Protocol: protocol, AppProtocol: ptr.Deref(app, "")})
}

func importPorts(imported *v1beta1.ServiceImport) string {
	var all []string
	for _, port := range imported.Spec.Ports {
		all = append(all, text(port.Name, port.Port, port.Protocol, port.AppProtocol))
	}
	return strings.Join(all, " ")
}

func endpointPorts(slice *discoveryv1.EndpointSlice) string {
	var all []string
	for _, port := range slice.Ports {
		all = append(all, text(*port.Name, *port.Port, *port.Protocol, port.AppProtocol))
	}
	return strings.Join(all, " ")
}
