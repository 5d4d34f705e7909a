// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
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

// newPodNetwork returns the network to a canary, and offers it to other clusters.
func newPodNetwork(ctx context.Context, c *cluster, to string) (*podNetwork, error) {
	address, err := ownAddress()
	if err != nil {
		return nil, err
	}
	manifest := fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {clusterIP: None, ports: [{name: %s, port: 8081}]}\n",
		canary.Service, canary.Port)
	family := discoveryv1.AddressTypeIPv6
	if address.Is4() {
		family = discoveryv1.AddressTypeIPv4
	}
	p := &podNetwork{to: to}
	for i := range nodes {
		listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(address, 0)))
		if err != nil {
			return nil, fmt.Errorf("listen for probes: %w", err)
		}
		p.listeners = append(p.listeners, listener)
		manifest += fmt.Sprintf(`---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: "%[1]s-%[2]d", labels: {%[3]s: %[1]s}}
addressType: %[4]s
ports: [{name: %[5]s, port: %[6]d}]
endpoints: [{addresses: ["%[7]s"], nodeName: node-%[2]d}]
`, canary.Service, i, discoveryv1.LabelServiceName, family, canary.Port, listener.Addr().(*net.TCPAddr).Port, address)
	}
	p.carry()
	return p, clusterset.ApplyIn(ctx, c.plane, clusterset.Namespace, []byte(manifest))
}

// errNoAddress: the controller refuses canaries at addresses that no pod has, such as that of the loopback device.
var errNoAddress = errors.New("this machine has no address besides those of the loopback device")

// ownAddress returns an address of this machine that a pod may have.
func ownAddress() (netip.Addr, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, each := range addresses {
		if prefix, err := netip.ParsePrefix(each.String()); err == nil && export.CheckPodAddress(prefix.Addr()) == nil {
			return prefix.Addr(), nil
		}
	}
	return netip.Addr{}, errNoAddress
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

// awaitProbes waits until each canary was probed: one that never answered counts for nothing when it is cut.
func (p *podNetwork) awaitProbes(ctx context.Context) {
	poll(ctx, "a probe of each canary", func(context.Context) (bool, error) {
		for i := range p.answered {
			if p.answered[i].Load() == 0 {
				return false, nil
			}
		}
		return true, nil
	})
}

// forward carries one connection, for no longer than a probe takes.
func forward(from *net.TCPConn, to string) {
	defer from.Close()
	conn, err := net.DialTimeout("tcp", to, time.Second)
	if err != nil {
		return
	}
	defer conn.Close()
	deadline := time.Now().Add(5 * time.Second)
	if from.SetDeadline(deadline) != nil || conn.SetDeadline(deadline) != nil {
		return
	}
	go func() {
		_, _ = io.Copy(conn, from)
		_ = conn.Close()
	}()
	_, _ = io.Copy(from, conn)
}

// cut lets no connection through any more, and refuses none.
func (p *podNetwork) cut() error {
	for _, listener := range p.listeners {
		if err := listener.SetDeadline(time.Now()); err != nil {
			return err
		}
	}
	p.carried.Wait()
	for _, listener := range p.listeners {
		// A queue of one is full with two connections; a probe may be one of them.
		if err := backlog(listener, 1); err != nil {
			return err
		}
		for range 2 {
			conn, err := net.DialTimeout("tcp", listener.Addr().String(), 200*time.Millisecond)
			if err != nil {
				break
			}
			p.fillers = append(p.fillers, conn)
		}
	}
	return nil
}

// repair undoes cut.
func (p *podNetwork) repair() error {
	for _, filler := range p.fillers {
		_ = filler.Close()
	}
	p.fillers = nil
	for _, listener := range p.listeners {
		if err := errors.Join(backlog(listener, 128), listener.SetDeadline(time.Time{})); err != nil {
			return err
		}
	}
	p.carry()
	return nil
}

// backlog sets how many connections the kernel makes before they are accepted.
func backlog(listener *net.TCPListener, length int) error {
	raw, err := listener.SyscallConn()
	if err != nil {
		return err
	}
	var listening error
	err = raw.Control(func(fd uintptr) { listening = syscall.Listen(int(fd), length) })
	return errors.Join(err, listening)
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
