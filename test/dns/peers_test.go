// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"fmt"
	"testing"

	"github.com/miekg/dns"
)

// peers are what other implementations of the Multi-Cluster Services API write into an importing cluster.
const peers = `apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: cilium, annotations: {multicluster.kubernetes.io/derived-service: derived-a1b2c3d4e5}}
spec: {type: ClusterSetIP, ips: [10.43.0.1], ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: lighthouse, annotations: {lighthouse.submariner.io/use-clusterset-ip: 'false'}}
spec: {type: ClusterSetIP, ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: lighthouse-x7x7x
  labels:
    multicluster.kubernetes.io/service-name: lighthouse
    multicluster.kubernetes.io/source-cluster: east
    endpointslice.kubernetes.io/managed-by: lighthouse-agent.submariner.io
addressType: IPv4
ports: [{name: http, port: 80, protocol: TCP}]
endpoints: [{addresses: [10.43.9.9], conditions: {ready: true}}]
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: lighthouse-headless}
spec: {type: Headless, ports: []}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: lighthouse-headless-y8y8y
  labels:
    multicluster.kubernetes.io/service-name: lighthouse-headless
    multicluster.kubernetes.io/source-cluster: east
    lighthouse.submariner.io/is-headless: 'true'
addressType: IPv4
ports: [{name: http, port: 80, protocol: TCP}]
endpoints: [{addresses: [10.43.1.1], hostname: web-0, conditions: {ready: true}}]
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata:
  name: cloudmap
  annotations: {multicluster.k8s.aws/derived-service: '[{"cluster":"a","derived-service":"imported-1"}]'}
spec: {type: ClusterSetIP, ips: [10.43.2.2, 10.43.2.1], ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: cloudmap-headless}
spec: {type: Headless, ips: [None, None], ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: imported-cloudmap-z9z9z
  labels:
    multicluster.kubernetes.io/service-name: cloudmap-headless
    multicluster.kubernetes.io/source-cluster: b
    endpointslice.kubernetes.io/managed-by: aws-cloud-map-mcs-controller-for-k8s
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.43.3.1], conditions: {ready: true}}]
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: karmada}
spec: {type: ClusterSetIP, ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: imported-east-karmada
  labels: {kubernetes.io/service-name: derived-karmada, endpointslice.kubernetes.io/managed-by: endpointslice-controller.karmada.io}
addressType: IPv4
ports: [{name: http, port: 80, protocol: TCP}]
endpoints: [{addresses: [10.43.4.1], conditions: {ready: true}}]
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: antrea, annotations: {multicluster.antrea.io/imported-service: 'true'}}
spec: {type: ClusterSetIP, ips: [10.43.5.1], ports: [{port: 80, protocol: TCP}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: handmade}
spec: {type: Headless, ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: handmade, labels: {multicluster.kubernetes.io/service-name: handmade}}
addressType: IPv4
ports: [{name: http, port: 80, protocol: TCP}]
endpoints: [{addresses: [10.43.6.1], conditions: {ready: true}}]
`

func TestWhatOtherImplementationsWrite(t *testing.T) {
	cluster := clusters(t)[0]
	namespace(t, cluster, "peers").apply(peers)
	s := serve(t, fmt.Sprintf(`clusterset.local:0 {
		bind 127.0.0.1
		multicluster {
			kubeconfig %s
			namespaces peers
		}
	}`, admin(t, cluster)))
	for _, tc := range []struct {
		qname string
		qtype uint16
		want  string
	}{
		{"cilium", dns.TypeA, "10.43.0.1"}, // without any slice
		{"_http._tcp.cilium", dns.TypeSRV, "0 100 80 cilium.peers.svc.clusterset.local."},
		{"lighthouse", dns.TypeA, "NODATA"}, // no clusterset IP
		{"lighthouse-headless", dns.TypeA, "10.43.1.1"},
		{"lighthouse-headless", dns.TypeSRV, "NODATA"}, // no port is declared
		{"web-0.east.lighthouse-headless", dns.TypeA, "10.43.1.1"},
		{"cloudmap", dns.TypeA, "10.43.2.1 10.43.2.2"},
		{"cloudmap-headless", dns.TypeA, "10.43.3.1"}, // None is no address
		{"_http._tcp.cloudmap-headless", dns.TypeSRV, "0 100 8080 10-43-3-1.b.cloudmap-headless.peers.svc.clusterset.local."},
		{"karmada", dns.TypeA, "NODATA"}, // no clusterset IP, and slices of a Service
		{"antrea", dns.TypeA, "10.43.5.1"},
		{"antrea", dns.TypeSRV, "0 100 80 antrea.peers.svc.clusterset.local."},
		{"handmade", dns.TypeA, "10.43.6.1"},
		{"handmade", dns.TypeSRV, "NODATA"}, // no source cluster, no host name
	} {
		if got := s.answers(tc.qname+".peers.svc.clusterset.local.", tc.qtype); got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.qname, dns.TypeToString[tc.qtype], got, tc.want)
		}
	}
}
