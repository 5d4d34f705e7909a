// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
	"github.com/clusterset-dns/clusterset-dns/test/pki"
)

// plainRoutes are a Gateway and routes without TLS.
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

// frontends: clients of north reach services of east by a load balancer, and by Gateways with the objects of the
// documentation, and those of west by node ports.
func frontends(t *testing.T, b *bed) {
	const shop = "shop" // as in the documentation
	page, err := os.ReadFile("../../docs/operate/networks.md")
	must(t, err)
	_, example, _ := strings.Cut(string(page), "## Encryption")
	_, example, _ = strings.Cut(example, "```yaml\n")
	example, _, found := strings.Cut(example, "```")
	if !found {
		t.Fatal("docs/operate/networks.md has no example of encryption")
	}
	for _, c := range b.all() {
		c.createNamespace(t, shop)
	}
	certificate, key, err := pki.SelfSigned([]string{"db.shop." + zone, "cache.shop." + zone})
	must(t, err)
	for _, c := range []*cluster{b.east, b.west} {
		c.writeFile(t, "tls.crt", string(certificate))
		c.writeFile(t, "tls.key", string(key))
	}
	t.Setenv("SSL_CERT_FILE", b.north.writeFile(t, "ca.crt", string(certificate))) // of clients
	apply := func(objects string) {
		eventually(t, "apply objects", func(ctx context.Context) error {
			return clusterset.Apply(ctx, b.east.Cluster, []byte(objects))
		})
	}
	for _, kind := range []string{"Gateway", "TCPRoute", "TLSRoute", "UDPRoute"} {
		apply(fmt.Sprintf(gatewayCRD, gatewayResource(kind).Resource, kind))
	}
	apply(plainRoutes)

	plain := []corev1.ServicePort{port("tcp", corev1.ProtocolTCP, 80, 8080), port("udp", corev1.ProtocolUDP, 53, 8080)}
	secure := []corev1.ServicePort{port("tls", corev1.ProtocolTCP, 443, 8443)}
	balanced := service{namespace: shop, name: "balanced", ports: plain, expose: export.ExposeLoadBalancer}
	queue := service{namespace: shop, name: "queue", ports: plain, expose: export.ExposeGateway}
	pods := map[string][]*pod{}
	var east []*pod
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
		pods[s.name] = b.east.pods(t, s, 1, serve...)
		if s.expose != "" {
			b.east.export(t, s)
		} else {
			b.east.serve(t, s)
			apply(strings.ReplaceAll(example, "db", s.name))
		}
		east = append(east, pods[s.name]...)
		s.change, s.expose = nil, ""
		pods[s.name] = append(pods[s.name], b.west.deploy(t, s, 1, serve...)...)
	}
	l := b.east.balance(t, "balanced", "clusters", "plain")
	client := b.north.client(t, shop, 0)
	// settled waits until the pods of both clusters answer, or only those of west.
	settled := func(both bool) {
		for name, of := range pods {
			ports := map[string]int{"tcp4": 80, "udp4": 53}
			if name == "db" || name == "cache" {
				ports = map[string]int{"tls": 443}
			}
			of = slices.DeleteFunc(slices.Clone(of), func(p *pod) bool { return !both && p.cluster == b.east })
			for network, port := range ports {
				client.settled(t, network, service{namespace: shop, name: name}.at(port), of...)
			}
		}
	}
	client.settled(t, "tcp4", balanced.at(80), pods["balanced"]...)

	// Each address counts as one endpoint, as does the node of west.
	const count = 900
	var counted *tally.Tally
	addresses := l.connections(t, "balanced", func() { counted = client.connect(t, count, "tcp4", balanced.at(80)) })
	for _, address := range l.pairs["balanced"] {
		// A share is as asked to six standard deviations of as many choices.
		if share := float64(addresses[address]) / count; math.Abs(share-1./3) > 6*math.Sqrt(2./9/count) || counted.Lost() > 0 {
			t.Errorf("%s has %.2f: %s; %v", address, share, counted, addresses)
		}
	}
	b.figures.add("load balancer with 2 addresses, and 1 node", counted, fmt.Sprint(addresses))

	watched := client.watch(t, "tcp4", balanced.at(80))
	watched.only(t, time.Now(), "east", "west")
	// change has the name of the load balancer, and the Gateway, other addresses.
	change := func(at int) {
		begin := time.Now()
		b.east.writeFile(t, "hosts", l.pairs["balanced"][at-1].String()+" balanced.lb.example\n")
		l.reconcile(t, at)
		for name, s := range map[string]service{"balanced": balanced, "plain": queue} {
			to, other := l.pairs[name][at-1], l.pairs[name][2-at]
			eventually(t, fmt.Sprintf("%s is reached at %s alone", s.name, to), func(ctx context.Context) error {
				var err error
				addresses := l.connections(t, name, func() { _, err = client.tryConnect(ctx, 30, "tcp4", s.at(80)) })
				if err == nil && (addresses[to] == 0 || addresses[other] > 0) {
					err = errors.New(fmt.Sprint(addresses))
				}
				return err
			})
		}
		counted := tally.New(watched.since(begin)...)
		if counted.Lost() > 0 {
			t.Errorf("connections were lost while addresses changed: %s", counted)
		}
		b.figures.add("load balancer and Gateway have other addresses", counted, "after "+seconds(time.Since(begin)))
		settled(true)
	}
	change(1)
	for ready, clusters := range [][]string{{"west"}, {"east", "west"}} {
		begin := time.Now()
		for _, p := range east {
			p.setReady(t, ready > 0)
		}
		took := watched.only(t, begin, clusters...)
		counted := tally.New(watched.since(begin)...)
		b.figures.add(fmt.Sprintf("load balancer, pods of %v are ready", clusters), counted, "after "+seconds(took))
		settled(ready > 0)
	}
	change(2)
}
