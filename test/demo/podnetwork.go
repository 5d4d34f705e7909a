// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/probe"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

// A podNetwork is the demo's substitute for a pod network: it relays connections to the probe targets of a cluster, all
// of which are the cluster's controller. Other pods have addresses, but nothing listens on them.
type podNetwork struct {
	listeners []*net.TCPListener
	to        string // the address on which the controller answers probes
	// fillers are connections that are never accepted. While they fill the queue, the kernel drops new ones, as in a cut network.
	fillers []net.Conn
	carried sync.WaitGroup
	// answered counts the completed connections of each listener.
	answered [nodes]atomic.Int64
}

// nodes is the number of probe targets per cluster: a single one would count only after --stale-after.
const nodes = 2

// newPodNetwork returns a network to a probe target, and publishes the target to other clusters. It returns nil if this
// machine has no IPv4 address that a pod may have: controllers refuse loopback addresses as probe targets.
func newPodNetwork(ctx context.Context, c *cluster, to string) *podNetwork {
	var address netip.Addr
	for _, each := range get(net.InterfaceAddrs()) {
		if prefix, err := netip.ParsePrefix(each.String()); err == nil && prefix.Addr().Is4() && export.CheckPodAddress(prefix.Addr()) == nil {
			address = prefix.Addr()
		}
	}
	if !address.IsValid() {
		return nil
	}
	manifest := fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: %s}\nspec: {clusterIP: None, ports: [{name: %s, port: 8081}]}\n",
		probe.Service, clusterset.Namespace, probe.Port)
	p := &podNetwork{to: to}
	for i := range nodes {
		listener := get(net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(address, 0))))
		p.listeners = append(p.listeners, listener)
		manifest += fmt.Sprintf(`---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: "%[1]s-%[2]d", namespace: %[3]s, labels: {%[4]s: %[1]s}}
addressType: IPv4
ports: [{name: %[5]s, port: %[6]d}]
endpoints: [{addresses: [%[7]s], nodeName: node-%[2]d}]
`, probe.Service, i, clusterset.Namespace, discoveryv1.LabelServiceName, probe.Port, listener.Addr().(*net.TCPAddr).Port, address)
	}
	p.carry()
	must(c.Apply(ctx, []byte(manifest)))
	return p
}

// carry relays connections until the network is cut.
func (p *podNetwork) carry() {
	for i, listener := range p.listeners {
		p.carried.Go(func() {
			for {
				conn, err := listener.AcceptTCP()
				if err != nil {
					return
				}
				go func() {
					forward(conn, p.to)
					p.answered[i].Add(1)
				}()
			}
		})
	}
}

// forward relays one connection until the probe target closes it.
func forward(from *net.TCPConn, to string) {
	defer from.Close()
	conn, err := net.DialTimeout("tcp", to, time.Second)
	if err != nil {
		return
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, from)
		_ = conn.Close()
	}()
	_, _ = io.Copy(from, conn)
}

// cut drops new connections without refusing them.
func (p *podNetwork) cut() {
	for _, listener := range p.listeners {
		must(listener.SetDeadline(time.Now()))
	}
	p.carried.Wait()
	for _, listener := range p.listeners {
		// A queue of length one is full with two connections. One of them may be a probe.
		backlog(listener, 1)
		for range 2 {
			conn, err := net.DialTimeout("tcp", listener.Addr().String(), 200*time.Millisecond)
			if err != nil {
				break
			}
			p.fillers = append(p.fillers, conn)
		}
	}
}

// repair undoes cut.
func (p *podNetwork) repair() {
	for _, filler := range p.fillers {
		_ = filler.Close()
	}
	p.fillers = nil
	for _, listener := range p.listeners {
		backlog(listener, 128)
		must(listener.SetDeadline(time.Time{}))
	}
	p.carry()
}

// backlog sets the number of connections that the kernel establishes before they are accepted.
func backlog(listener *net.TCPListener, length int) {
	must(get(listener.SyscallConn()).Control(func(fd uintptr) { must(syscall.Listen(int(fd), length)) }))
}

func (p *podNetwork) close() {
	for _, listener := range p.listeners {
		_ = listener.Close()
	}
	for _, filler := range p.fillers {
		_ = filler.Close()
	}
	p.carried.Wait()
}
