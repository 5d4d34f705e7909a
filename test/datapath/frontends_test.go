// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
)

// plainRoutes are a Gateway and routes that do not use TLS.
const plainRoutes = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: plain, namespace: shop}
spec:
  gatewayClassName: example
  listeners: [{name: tcp, protocol: TCP, port: 5672}, {name: udp, protocol: UDP, port: 5672}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: queue, namespace: shop}
spec:
  parentRefs: [{name: plain, sectionName: tcp}]
  rules: [{backendRefs: [{name: queue, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata: {name: queue, namespace: shop}
spec:
  parentRefs: [{name: plain, sectionName: udp}]
  rules: [{backendRefs: [{name: queue, port: 53}]}]
`

// frontends: clients of north reach services of east through a load balancer, and through Gateways with the objects of
// the documentation, and services of west through node ports.
func frontends(t *testing.T, b *bed) {
	const shop = "shop" // as in the documentation
	example := documented(t, "operate/networks.md", "Passthrough")
	b.createNamespace(t, shop)
	certificate, key, err := pki.SelfSigned([]string{"db.shop." + zone, "cache.shop." + zone})
	must(t, err)
	for _, c := range []*cluster{b.east, b.west} {
		c.writeFile(t, "tls.crt", string(certificate))
		c.writeFile(t, "tls.key", string(key))
	}
	t.Setenv("SSL_CERT_FILE", b.north.writeFile(t, "ca.crt", string(certificate))) // for clients
	for _, kind := range []string{"Gateway", "TCPRoute", "TLSRoute", "UDPRoute"} {
		b.east.apply(t, clusterset.CRD("gateway.networking.k8s.io", "v1", kind))
	}
	b.east.apply(t, plainRoutes)

	plain := []corev1.ServicePort{port("tcp", corev1.ProtocolTCP, 80, 8080), port("udp", corev1.ProtocolUDP, 53, 8080)}
	secure := []corev1.ServicePort{port("tls", corev1.ProtocolTCP, 443, 8443)}
	balanced := service{namespace: shop, name: "balanced", ports: plain, expose: export.ExposeLoadBalancer}
	queue := service{namespace: shop, name: "queue", ports: plain, expose: export.ExposeGateway}
	east, west := map[string]*pod{}, map[string]*pod{}
	for _, s := range []service{
		balanced, queue, {namespace: shop, name: "db", ports: secure}, {namespace: shop, name: "cache", ports: secure},
	} {
		serve := []string{"tcp:8080", "udp:8080"}
		switch s.name {
		case "balanced":
			s.change = func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer }
		case "db", "cache":
			serve = []string{"tls:8443"}
		}
		east[s.name] = b.east.pods(t, s, 1, serve...)[0]
		if s.expose != "" {
			b.east.export(t, s)
		} else {
			b.east.serve(t, s)
			b.east.apply(t, strings.ReplaceAll(example, "db", s.name))
		}
		s.change, s.expose = nil, ""
		west[s.name] = b.west.deploy(t, s, 1, serve...)[0]
	}
	l := b.east.balance(t, east)
	client := b.north.client(t, shop, 0)
	// settled waits until pods of both clusters answer, or only pods of west.
	settled := func(both bool) {
		for name, of := range west {
			ports := map[string]int{"tcp4": 80, "udp4": 53}
			if name == "db" || name == "cache" {
				ports = map[string]int{"tls": 443}
			}
			for network, port := range ports {
				by := []*pod{of, east[name]}
				client.settled(t, network, service{namespace: shop, name: name}.at(port), by[:map[bool]int{false: 1, true: 2}[both]]...)
			}
		}
	}
	client.settled(t, "tcp4", balanced.at(80), east["balanced"], west["balanced"])

	// Each address of the load balancer counts as one endpoint, like the node of west.
	const count = 900
	addresses := l.connections(t, "balanced", func() {
		counted, err := client.connect(t.Context(), count, lossless, "tcp4", balanced.at(80))
		if must(t, err); counted.Lost() > 0 {
			t.Errorf("connections were lost: %s", counted)
		}
	})
	for _, address := range l.pairs["balanced"] {
		// Each share is within six standard deviations of this many random choices.
		if share := float64(addresses[address]) / count; math.Abs(share-1./3) > 6*math.Sqrt(2./9/count) {
			t.Errorf("%s has %.2f of the connections: %v", address, share, addresses)
		}
	}

	watched := client.watch(t, lossless, balanced.at(80))
	watched.only(t, time.Now(), "east", "west")
	// change publishes one address of the load balancer, by a name, and one of each Gateway.
	change := func(at int) {
		begin := time.Now()
		b.east.writeFile(t, "hosts", l.pairs["balanced"][at].String()+" balanced.lb.example\n")
		l.publish(t, `[{"hostname":"balanced.lb.example"}]`, at)
		for name, s := range map[string]service{"balanced": balanced, "plain": queue} {
			to, other := l.pairs[name][at], l.pairs[name][1-at]
			eventually(t, fmt.Sprintf("%s is reached at %s alone", s.name, to), func(ctx context.Context) error {
				var err error
				addresses := l.connections(t, name, func() { _, err = client.connect(ctx, 30, 2*time.Second, "tcp4", s.at(80)) })
				if err == nil && (addresses[to] == 0 || addresses[other] > 0) {
					err = errors.New(fmt.Sprint(addresses))
				}
				return err
			})
		}
		watched.intact(t, begin, "load balancer and Gateways have other addresses")
		settled(true)
	}
	change(0)
	for _, ready := range []bool{false, true} {
		for _, p := range east {
			p.setReady(t, ready)
		}
		settled(ready)
	}
	change(1)
}

// balancer is a host next to the nodes of a cluster, with the addresses of a load balancer and of Gateways. Its nginx
// forwards connections to pods. The test writes its addresses into the API.
type balancer struct {
	*pod // with a network, but no Pod
	log  string
	// pairs are two addresses for the load balancer and for each Gateway, by name. Both always work.
	pairs map[string][]netip.Addr
}

// streams is the configuration of nginx, which logs the address of each connection when it ends.
const streams = `load_module /usr/lib/nginx/modules/ngx_stream_module.so;
events {}
stream {
log_format address $server_addr;
access_log connections.log address;
map $ssl_preread_server_name $secure { db.shop.svc.clusterset.local DB:8443; cache.shop.svc.clusterset.local CACHE:8443; }
server { listen BALANCED1:80; listen BALANCED2:80; proxy_pass NODE:TCP; }
server { listen BALANCED1:53 udp; listen BALANCED2:53 udp; proxy_pass NODE:UDP; proxy_responses 1; }
server { listen PLAIN1:5672; listen PLAIN2:5672; proxy_pass QUEUE:8080; }
server { listen PLAIN1:5672 udp; listen PLAIN2:5672 udp; proxy_pass QUEUE:8080; proxy_responses 1; }
server { listen CLUSTERS1:443; listen CLUSTERS2:443; proxy_pass $secure; ssl_preread on; }
}
`

// balance creates a balancer for pods of services, publishes both of its addresses, and starts its nginx.
func (c *cluster) balance(t testing.TB, pods map[string]*pod) *balancer {
	base := c.reached[0].Masked().Addr().As4()
	base[2] = 200 // far from the addresses of the router and the nodes
	own := netip.AddrFrom4(base)
	l := &balancer{pairs: map[string][]netip.Addr{}, pod: &pod{
		cluster: c, namespace: "shop", name: "balancer", addresses: []netip.Addr{own},
		Namespace: c.attach(t, c.uplink, []netip.Addr{own}),
	}}
	balanced, err := c.CoreV1().Services("shop").Get(t.Context(), "balanced", metav1.GetOptions{})
	must(t, err)
	replacements := []string{
		"NODE:TCP", fmt.Sprintf("%s:%d", c.nodes[0].addresses[0], balanced.Spec.Ports[0].NodePort),
		"NODE:UDP", fmt.Sprintf("%s:%d", c.nodes[0].addresses[0], balanced.Spec.Ports[1].NodePort),
	}
	for name, p := range pods {
		replacements = append(replacements, strings.ToUpper(name)+":", p.addresses[0].String()+":")
	}
	address := own
	for _, name := range []string{"balanced", "plain", "clusters"} {
		for i := range 2 {
			address = address.Next()
			must(t, l.AddAddress(address))
			must(t, c.uplink.Route(own, netip.PrefixFrom(address, address.BitLen())))
			l.pairs[name] = append(l.pairs[name], address)
			replacements = append(replacements, fmt.Sprintf("%s%d:", strings.ToUpper(name), i+1), address.String()+":")
		}
	}
	l.log = filepath.Join(l.nginx(t, strings.NewReplacer(replacements...).Replace(streams)), "connections.log")
	l.publish(t, fmt.Sprintf(`[{"ip":%q},{"ip":%q}]`, l.pairs["balanced"][0], l.pairs["balanced"][1]), 0)
	for route, gateway := range map[[2]string][2]string{
		{"tcproutes", "queue"}: {"plain", "tcp"}, {"udproutes", "queue"}: {"plain", "udp"},
		{"tlsroutes", "db"}: {"clusters", "tls"}, {"tlsroutes", "cache"}: {"clusters", "tls"},
	} {
		l.setStatus(t, route[0]+gatewayAPI, route[1], fmt.Sprintf(`{"parents":[{"parentRef":{"name":%q,"sectionName":%q},
"controllerName":"example.org/nginx","conditions":[{"type":"Accepted","status":"True"}]}]}`, gateway[0], gateway[1]))
	}
	return l
}

// gatewayAPI is the version and group of Gateway API.
const gatewayAPI = ".v1.gateway.networking.k8s.io"

// publish writes the status of the load balancer, and one address per Gateway.
func (l *balancer) publish(t testing.TB, ingress string, at int) {
	l.setStatus(t, "services.v1.", "balanced", `{"loadBalancer":{"ingress":`+ingress+`}}`)
	for _, gateway := range []string{"plain", "clusters"} {
		l.setStatus(t, "gateways"+gatewayAPI, gateway,
			fmt.Sprintf(`{"addresses":[{"type":"IPAddress","value":%q}]}`, l.pairs[gateway][at]))
	}
}

// setStatus writes fields of the status of an object in the namespace shop.
func (l *balancer) setStatus(t testing.TB, resource, name, status string) {
	l.cluster.patch(t, resource, "shop", name, `{"status":`+status+`}`, "status")
}

// connections counts, by address, the connections to a load balancer or Gateway that end while do runs.
func (l *balancer) connections(t testing.TB, name string, do func()) map[netip.Addr]int {
	must(t, os.Truncate(l.log, 0))
	do()
	text, err := os.ReadFile(l.log)
	must(t, err)
	counts := map[netip.Addr]int{}
	for _, address := range l.pairs[name] {
		counts[address] = strings.Count(string(text), address.String()+"\n")
	}
	return counts
}
