// SPDX-License-Identifier: Apache-2.0

// Package exporttest makes exports for the tests of what merges and places them.
package exporttest

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apidiff "k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Web is the service of all exports.
var Web = types.NamespacedName{Namespace: "demo", Name: "web"}

// Day is the creation time of an export: the first is the oldest.
func Day(n int) time.Time { return time.Date(2026, 3, n, 12, 0, 0, 0, time.UTC) }

// Ports reads ports as in "http:80/TCP 53/UDP dns:53/TCP(dns)".
func Ports(text string) []export.Port {
	var ports []export.Port
	for _, field := range strings.Fields(text) {
		name, rest, named := strings.Cut(field, ":")
		if !named {
			name, rest = "", field
		}
		rest, app, _ := strings.Cut(strings.TrimSuffix(rest, ")"), "(")
		digits, protocol, _ := strings.Cut(rest, "/")
		number, err := strconv.ParseInt(digits, 10, 32)
		if err != nil {
			panic(err)
		}
		ports = append(ports, export.Port{Name: name, Protocol: corev1.Protocol(protocol), Number: int32(number), AppProtocol: app})
	}
	return ports
}

// View is an export of a cluster with one slice, web-<cluster>, whose endpoints serve all ports on a number that is
// 8000 higher. Endpoints are addresses, with "!" before those that are not ready.
func View(cluster string, created int, ports, endpoints string, change ...func(*export.View)) *export.View {
	view := &export.View{
		Cluster: cluster,
		Service: Web,
		Spec: &export.Spec{
			Created:               Day(created),
			Type:                  v1beta1.ClusterSetIP,
			Ports:                 Ports(ports),
			IPFamilies:            []corev1.IPFamily{corev1.IPv4Protocol},
			SessionAffinity:       corev1.ServiceAffinityNone,
			InternalTrafficPolicy: corev1.ServiceInternalTrafficPolicyCluster,
		},
	}
	view.Slices = []export.Slice{Slice("web-"+cluster, ports, endpoints)}
	for _, c := range change {
		c(view)
	}
	return view
}

// Absent is an export of a cluster whose Service does not exist.
func Absent(cluster string) *export.View {
	view, _, _ := export.FromService(export.Exporter{Cluster: cluster},
		&v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: Web.Namespace, Name: Web.Name}}, nil, nil)
	return view
}

// Slice is a slice of a name whose endpoints serve all ports on a number that is 8000 higher.
func Slice(name, ports, endpoints string) export.Slice {
	slice := export.Slice{Name: name, AddressType: discoveryv1.AddressTypeIPv4}
	for _, port := range Ports(ports) {
		slice.Targets = append(slice.Targets, export.Target{Protocol: port.Protocol, Number: port.Number, Port: port.Number + 8000})
	}
	for _, field := range strings.Fields(endpoints) {
		address, unready := strings.CutPrefix(field, "!")
		if strings.Contains(address, ":") {
			slice.AddressType = discoveryv1.AddressTypeIPv6
		}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: export.Conditions(!unready, !unready, false),
		})
	}
	return slice
}

// Headless makes a view that of a headless service.
func Headless(view *export.View) { view.Spec.Type = v1beta1.Headless }

// Families gives a view these IP families.
func Families(list ...corev1.IPFamily) func(*export.View) {
	return func(view *export.View) { view.Spec.IPFamilies = list }
}

// Stored are an import and its derived Service as an API server has them after they were written: with UIDs, and with the
// IPs that the Service lacked. Either may be nil.
func Stored(imported *v1beta1.ServiceImport, derived *corev1.Service) (*v1beta1.ServiceImport, *corev1.Service) {
	if imported != nil {
		imported = imported.DeepCopy()
		imported.UID = "uid-of-import"
	}
	if derived != nil {
		derived = derived.DeepCopy()
		for i, family := range derived.Spec.IPFamilies {
			if i == len(derived.Spec.ClusterIPs) {
				derived.Spec.ClusterIPs = append(derived.Spec.ClusterIPs,
					map[corev1.IPFamily]string{"IPv4": "10.96.0.7", "IPv6": "fd00:96::7"}[family])
			}
		}
		derived.Spec.ClusterIP = derived.Spec.ClusterIPs[0]
		for i := range derived.OwnerReferences {
			derived.OwnerReferences[i].UID = "uid-of-import"
		}
	}
	return imported, derived
}

// Diff fails the test if two values differ.
func Diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s (-want +got):\n%s", what, apidiff.Diff(want, got))
	}
}
