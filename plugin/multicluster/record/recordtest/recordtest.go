// SPDX-License-Identifier: Apache-2.0

// Package recordtest builds services from short texts, for tests. It panics on invalid text.
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

// Build returns the service with this name in namespace demo. raw is the YAML of the import's spec.
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

// Zone is the zone in which Ask asks.
const Zone = "clusterset.local."

// Ask answers a question for a name in Zone, as the plugin does: it uses the client only if the service limits its answers.
func Ask(x *record.Index, q record.Question) record.Answer {
	client := q.Client
	q.Client = record.Client{}
	q.Request.Parse(strings.TrimSuffix(q.Name[:len(q.Name)-len(Zone)], "."))
	if service := x.Find(&q); service != nil {
		if service.Limits(&q) {
			q.Client = client
		}
		q.Answer.Result = service.Lookup(&q)
	}
	return q.Answer
}

// Unmarshal reads YAML.
func Unmarshal(text string, into any) {
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		panic(fmt.Sprintf("%v in\n%s", err, text))
	}
}

// SQL is the spec of a headless import with the default port of Slice.
const SQL = "{type: Headless, ports: [{name: sql, port: 5432}]}"

// Headless returns the YAML of the spec of a headless import. ports is a text for Ports.
func Headless(ports string) string { return "{type: Headless, ports: " + Ports(ports) + "}" }

// ClusterSetIP returns the YAML of the spec of a ClusterSetIP import with these IPs. ports is a text for Ports.
func ClusterSetIP(ips, ports string) string {
	return "{type: ClusterSetIP, ips: [" + strings.Join(strings.Fields(ips), ", ") + "], ports: " + Ports(ports) + "}"
}

// Ports returns the YAML of ports from texts "name=number/protocol". Each part is optional.
func Ports(text string) string {
	var all []string
	for port := range strings.FieldsSeq(text) {
		name, rest, _ := strings.Cut(port, "=")
		number, protocol, _ := strings.Cut(rest, "/")
		all = append(all, fmt.Sprintf("{name: %s, port: %s, protocol: %s}", name, number, protocol))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// Slice returns a slice from "<cluster> [<AnnotationSRV>][<ports>]: <endpoints>". The annotation is optional; without
// ports in brackets, the slice has the port of SQL. An endpoint is an address or a name below example.org. "!" before
// it means not ready, "~" serving and terminating; "/" precedes a hostname and "@" a zone.
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

// Slices returns several slices, separated by "; ".
func Slices(text string) (all []*discoveryv1.EndpointSlice) {
	for each := range strings.SplitSeq(text, "; ") {
		if text != "" {
			all = append(all, Slice(each))
		}
	}
	return all
}

// Many returns the slices of count endpoints in each of two clusters, with both families if dual is set. The endpoints
// in east have hostnames; with dual, all do.
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
