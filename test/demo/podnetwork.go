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

	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

// A podNetwork is all that the demo has of one: it carries the connections to the canaries of a cluster, each of which
// is the cluster's controller. Other pods have addresses, and nothing behind them.
type podNetwork struct {
	listeners []*net.TCPListener
	to        string // the address of the controller's canary
	// fillers are connections that nothing accepts: behind them the kernel drops what arrives, as a cut network does.
	fillers []net.Conn
	carried sync.WaitGroup
	// answered counts the connections that each listener carried to their end.
	answered [nodes]atomic.Int64
}

// nodes is how many canaries a cluster has: a lone one would count only after --stale-after.
const nodes = 2

// newPodNetwork returns the network to a canary, and offers it to other clusters. It is nil if this machine has no IPv4 address
// that a pod may have: controllers refuse canaries at those of the loopback device.
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
		canary.Service, clusterset.Namespace, canary.Port)
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
`, canary.Service, i, clusterset.Namespace, discoveryv1.LabelServiceName, canary.Port, listener.Addr().(*net.TCPAddr).Port, address)
	}
	p.carry()
	must(clusterset.Apply(ctx, c, []byte(manifest)))
	return p
}

// carry carries connections until the network is cut.
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

// forward carries one connection, which the canary ends.
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

// cut lets no connection through any more, and refuses none.
func (p *podNetwork) cut() {
	for _, listener := range p.listeners {
		must(listener.SetDeadline(time.Now()))
	}
	p.carried.Wait()
	for _, listener := range p.listeners {
		// A queue of one is full with two connections; a probe may be one of them.
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

// backlog sets how many connections the kernel makes before they are accepted.
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
