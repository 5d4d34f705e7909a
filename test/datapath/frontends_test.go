// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

// streams is the configuration of nginx. Each address forwards to a pod of its own, so that answers tell the address.
const streams = `load_module /usr/lib/nginx/modules/ngx_stream_module.so;
events {}
stream {
server { listen %s:80; proxy_pass %s:8080; }
server { listen %s:80; proxy_pass %s:8080; }
server { listen %s:5672; proxy_pass %s:8080; }
}
`

// route is a Gateway with a route to the Service. Its listener has another port than the Service.
const route = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: %[1]s}
spec: {gatewayClassName: example, listeners: [{name: tcp, protocol: TCP, port: 5672}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: balanced, namespace: %[1]s}
spec: {parentRefs: [{name: shared}], rules: [{backendRefs: [{name: balanced, port: 80}]}]}
`

// frontends: clients of north reach pods of east through the addresses of a load balancer, through its name, and
// through a Gateway. The test is the controller of both. nginx forwards the connections.
func frontends(t *testing.T, b *bed) {
	s := service{namespace: b.namespace(t), name: "balanced", ports: http80}
	west := b.west.deploy(t, s, 1)
	s.change = func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer }
	east := b.east.deploy(t, s, 3)
	at := b.east.balance(t, s.namespace, east)
	for _, kind := range []string{"Gateway", "TCPRoute"} {
		b.east.apply(t, clusterset.CRD("gateway.networking.k8s.io", "v1", kind))
	}
	b.east.apply(t, fmt.Sprintf(route, s.namespace))
	b.east.patch(t, "gateways.v1.gateway.networking.k8s.io", s.namespace, "shared",
		fmt.Sprintf(`{"status":{"addresses":[{"value":%q}]}}`, at[2]), "status")
	b.east.patch(t, "tcproutes.v1.gateway.networking.k8s.io", s.namespace, s.name,
		`{"status":{"parents":[{"parentRef":{"name":"shared"},"conditions":[{"type":"Accepted","status":"True"}]}]}}`, "status")

	expose := func(how export.Exposure) {
		b.east.patch(t, "serviceexports.v1beta1.multicluster.x-k8s.io", s.namespace, s.name,
			fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, export.AnnotationExpose, how))
	}
	publish := func(ingress string) {
		b.east.patch(t, "services.v1.", s.namespace, s.name, `{"status":{"loadBalancer":{"ingress":[`+ingress+`]}}}`, "status")
	}
	name := func(address netip.Addr) { b.east.writeFile(t, "hosts", address.String()+" balanced.lb.example\n") }
	client := b.north.client(t, s.namespace, 0)
	for _, step := range []struct {
		name string
		do   func()
		by   []*pod
	}{
		{"two addresses", func() {
			publish(fmt.Sprintf(`{"ip":%q},{"ip":%q}`, at[0], at[1]))
			expose(export.ExposeLoadBalancer)
		}, east[:2]},
		{"a name", func() { name(at[0]); publish(`{"hostname":"balanced.lb.example"}`) }, east[:1]},
		{"the name has another address", func() { name(at[1]) }, east[1:2]},
		{"a Gateway", func() { expose(export.ExposeGateway) }, east[2:]},
	} {
		step.do()
		all := append([]*pod{west[0]}, step.by...)
		took := client.settled(t, "tcp4", s.at(80), all...)
		t.Logf("%s: after %s", step.name, seconds(took))
		client.reaches(t, 200, "tcp4", s.at(80), all...)
		for _, p := range east {
			p.setReady(t, false)
		}
		client.reaches(t, 200, "tcp4", s.at(80), west...)
		for _, p := range east {
			p.setReady(t, true)
		}
		client.settled(t, "tcp4", s.at(80), all...)
	}
}

// balance starts nginx on a host next to the nodes, with an address for each of three pods, and returns the addresses.
func (c *cluster) balance(t testing.TB, namespace string, pods []*pod) (at []netip.Addr) {
	base := c.reached[0].Masked().Addr().As4()
	base[2] = 200 // far from the addresses of the router and the nodes
	own := netip.AddrFrom4(base)
	host := &pod{
		cluster: c, namespace: namespace, name: "balancer", addresses: []netip.Addr{own},
		Namespace: c.attach(t, c.uplink, []netip.Addr{own}, netip.PrefixFrom(own, 24)),
	}
	var values []any
	for _, p := range pods {
		base[3]++
		at = append(at, netip.AddrFrom4(base))
		values = append(values, netip.AddrFrom4(base), p.addresses[0])
	}
	must(t, host.AddAddress(at...))
	host.run(t, "nginx", "-p", t.TempDir(), "-c", c.writeFile(t, "nginx.conf", fmt.Sprintf(streams, values...)),
		"-e", "stderr", "-g", "daemon off; master_process off; pid nginx.pid;")
	return at
}
