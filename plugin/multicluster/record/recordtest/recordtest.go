// SPDX-License-Identifier: Apache-2.0

// Package recordtest has services in few words, for tests. What it cannot read panics.
package recordtest

import (
	"fmt"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// Build makes the service of namespace demo with a name, of the YAML of its import and of slices.
func Build(config *record.Config, name, raw string, endpointSlices ...*discoveryv1.EndpointSlice) *record.Service {
	imported := new(mcsv1beta1.ServiceImport)
	Unmarshal(raw, imported)
	imported.Namespace, imported.Name = "demo", name
	var all []*record.Endpoints
	for _, slice := range endpointSlices {
		all = append(all, record.FromEndpointSlice(slice, true))
	}
	return record.Build(config, record.FromServiceImport(imported), all)
}

// Zone is the zone that Ask asks in.
const Zone = "clusterset.local."

// Ask answers a question for a name in the zone, as the plugin does: its client counts if the service says so.
func Ask(x *record.Index, q record.Question) record.Answer {
	client := q.Client
	q.Client = record.Client{}
	q.Request.Parse(strings.TrimSuffix(q.Name[:len(q.Name)-len(Zone)], "."))
	if service := x.Find(&q); service != nil {
		if service.Limits(&q) {
			q.Client = client
		}
		service.Lookup(&q)
	}
	return q.Answer
}

// Unmarshal reads YAML.
func Unmarshal(text string, into any) {
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		panic(fmt.Sprintf("%v in\n%s", err, text))
	}
}

// SQL is the spec of a headless import with the port of Slice.
const SQL = "{type: Headless, ports: [{name: sql, port: 5432}]}"

// Headless is the YAML of the spec of a headless import with ports, as for Ports.
func Headless(ports string) string { return "{type: Headless, ports: " + Ports(ports) + "}" }

// ClusterSetIP is the YAML of the spec of another import, with IPs and with ports, as for Ports.
func ClusterSetIP(ips, ports string) string {
	return "{type: ClusterSetIP, ips: [" + strings.Join(strings.Fields(ips), ", ") + "], ports: " + Ports(ports) + "}"
}

// Ports is the YAML of ports: "name=number/protocol", of which each may be missing.
func Ports(text string) string {
	var all []string
	for port := range strings.FieldsSeq(text) {
		name, rest, _ := strings.Cut(port, "=")
		number, protocol, _ := strings.Cut(rest, "/")
		var fields []string
		for _, field := range [][2]string{{"name", name}, {"port", number}, {"protocol", protocol}} {
			if field[1] != "" {
				fields = append(fields, field[0]+": "+field[1])
			}
		}
		all = append(all, "{"+strings.Join(fields, ", ")+"}")
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// Slice is a slice of a cluster: its id, then the annotation of SRV answers, if any, its ports in brackets if they are not
// that of sql, as for Ports, and after ": " endpoints. These are addresses or names below example.org, with "!" before those that are not ready and say no more, "~"
// before those that serve and terminate, "/" before a hostname and "@" before a zone.
func Slice(text string) *discoveryv1.EndpointSlice {
	cluster, endpoints, _ := strings.Cut(text, ": ")
	ports := "sql=5432"
	if id, list, found := strings.Cut(strings.TrimSuffix(cluster, "]"), "["); found {
		cluster, ports = id, list
	}
	cluster, annotation, _ := strings.Cut(cluster, " ")
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Labels: map[string]string{mcsv1beta1.LabelSourceCluster: cluster},
			Annotations: map[string]string{record.AnnotationSRV: annotation},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	switch {
	case strings.Contains(endpoints, ":"):
		slice.AddressType = discoveryv1.AddressTypeIPv6
	case strings.HasSuffix(endpoints, ".example.org"):
		slice.AddressType = discoveryv1.AddressTypeFQDN
	}
	Unmarshal(Ports(ports), &slice.Ports)
	for text := range strings.FieldsSeq(endpoints) {
		text, zone, _ := strings.Cut(text, "@")
		text, host, _ := strings.Cut(text, "/")
		address := strings.TrimLeft(text, "!~")
		endpoint := discoveryv1.Endpoint{Addresses: []string{address}, Hostname: &host, Zone: &zone}
		switch {
		case address == text:
		case text[0] == '~':
			endpoint.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
		default:
			endpoint.Conditions.Ready = new(false)
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	return slice
}

// Slices are several slices, with "; " between them.
func Slices(text string) (all []*discoveryv1.EndpointSlice) {
	for each := range strings.SplitSeq(text, "; ") {
		if text != "" {
			all = append(all, Slice(each))
		}
	}
	return all
}

// Many are the slices of so many endpoints in each of two clusters, of both families if dual is set. Those of east, and all
// if dual, have hostnames.
func Many(count int, dual bool) []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	for c, cluster := range []string{"east", "west"} {
		v4, v6 := cluster+":", cluster+":"
		for i := range count {
			host := ""
			if cluster == "east" || dual {
				host = fmt.Sprintf("/db-%d", i)
			}
			v4 += fmt.Sprintf(" 10.%d.%d.%d%s", c+1, i/250, 1+i%250, host)
			v6 += fmt.Sprintf(" fd00:%d::%x%s", c+1, i+1, host)
		}
		if all = append(all, Slice(v4)); dual {
			all = append(all, Slice(v6))
		}
	}
	return all
}
