// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"fmt"
	"testing"

	"github.com/miekg/dns"
)

func TestOptionsSelectWhatIsServed(t *testing.T) {
	cluster := clusters(t)[0]
	one, two := namespace(t, cluster, "one"), namespace(t, cluster, "two")
	one.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: one, labels: {clusterset: 'true'}}")
	labelled := func(name, ip, labels string) string {
		return "apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceImport\nmetadata: {name: " + name + ", labels: " +
			labels + "}\nspec: {type: ClusterSetIP, ips: [" + ip + "], ports: []}"
	}
	one.apply(labelled("front", "10.42.1.1", "{tier: front}"))
	one.apply(labelled("back", "10.42.1.2", "{tier: back}"))
	one.apply(serviceImport("v1beta1", "db", "{type: Headless, ports: []}") +
		endpointSlice("db", "east", "IPv4", "[]", "{addresses: [10.1.1.1]}"))
	two.apply(labelled("front", "10.42.2.1", "{tier: front}"))

	const front, back, db, other = "front.one.svc", "back.one.svc", "db.one.svc", "front.two.svc"
	config := admin(t, cluster)
	for options, want := range map[string]map[string]string{
		"": {front: "10.42.1.1", back: "10.42.1.2", db: "10.1.1.1", other: "10.42.2.1", "one.svc": "NODATA"},
		"namespaces one none": {
			front: "10.42.1.1", back: "10.42.1.2", db: "10.1.1.1", other: "NXDOMAIN", "two.svc": "NXDOMAIN",
		},
		"namespace_labels clusterset=true": {front: "10.42.1.1", db: "10.1.1.1", other: "NXDOMAIN", "two.svc": "NXDOMAIN"},
		"labels tier in (front)":           {front: "10.42.1.1", back: "NXDOMAIN", db: "NXDOMAIN", other: "10.42.2.1"},
		"noendpoints":                      {front: "10.42.1.1", db: "NXDOMAIN", other: "10.42.2.1"},
	} {
		t.Run(options, func(t *testing.T) {
			s := serve(t, fmt.Sprintf(`clusterset.local:0 {
				bind 127.0.0.1
				multicluster {
					kubeconfig %s
					%s
					%s
				}
			}`, config, options, patient))
			for name, answer := range want {
				if got := s.answers(name+".clusterset.local.", dns.TypeA); got != answer {
					t.Errorf("%s: %s, want %s", name, got, answer)
				}
			}
		})
	}

	s := serve(t, fmt.Sprintf(`clusterset.local:0 {
		bind 127.0.0.1
		multicluster {
			kubeconfig %s
			namespace_labels clusterset=true
		}
	}`, config))
	two.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: two, labels: {clusterset: 'true'}}")
	s.until(other+".clusterset.local.", dns.TypeA, "10.42.2.1")
	two.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: two, labels: {clusterset: 'no'}}")
	s.until(other+".clusterset.local.", dns.TypeA, "NXDOMAIN")
}
