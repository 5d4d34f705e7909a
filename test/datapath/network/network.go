// SPDX-License-Identifier: Apache-2.0

// Package network makes networks of Linux network namespaces: routers, and what is attached to them, down to single
// pods. A namespace has no name in the file system; it goes when nobody holds it and no process is in it.
package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// Namespace is a network namespace. Its methods may be called from any goroutine.
type Namespace struct {
	descriptor netns.NsHandle
	netlink    *netlink.Handle
}

// The addresses by which every namespace knows the one that it is attached to. They mean something on their wire only.
var gateways = []netip.Addr{netip.MustParseAddr("169.254.1.1"), netip.MustParseAddr("fe80::1")}

// settings are what a namespace gets: it forwards, and its addresses can be used at once, without a search for
// duplicates.
var settings = map[string]string{
	"ipv4/ip_forward":                 "1",
	"ipv4/conf/all/rp_filter":         "0",
	"ipv4/conf/default/rp_filter":     "0",
	"ipv6/conf/all/forwarding":        "1",
	"ipv6/conf/default/accept_dad":    "0",
	"ipv6/conf/default/dad_transmits": "0",
	// Clients that make connections by the thousand.
	"ipv4/ip_local_port_range": "10000 65535",
	"ipv4/tcp_tw_reuse":        "1",
}

// New makes an empty network namespace, in which the loopback interface is up.
func New() (namespace *Namespace, err error) {
	err = inThread(func() error {
		if _, err := netns.New(); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		namespace, err = setUp()
		return err
	})
	return namespace, err
}

// Own is the namespace of this process, made a router like those of New.
func Own() (namespace *Namespace, err error) {
	err = inThread(func() (err error) {
		namespace, err = setUp()
		return err
	})
	return namespace, err
}

// Do calls a function in a thread that is in the namespace: the sockets that it makes are of the namespace.
func (n *Namespace) Do(do func() error) error {
	return inThread(func() error {
		if err := netns.Set(n.descriptor); err != nil {
			return err
		}
		return do()
	})
}

// inThread calls a function that may lead its thread into another namespace, and leads it back to where it was.
func inThread(do func() error) (err error) {
	runtime.LockOSThread()
	before, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer before.Close()
	defer func() {
		if back := netns.Set(before); back != nil {
			err = errors.Join(err, back)
			return // the thread stays locked, so that no other goroutine gets it
		}
		runtime.UnlockOSThread()
	}()
	return do()
}

// setUp sets up the namespace that the thread is in.
func setUp() (n *Namespace, err error) {
	for name, value := range settings {
		if err := os.WriteFile(filepath.Join("/proc/sys/net", name), []byte(value), 0o644); err != nil {
			return nil, err
		}
	}
	n = &Namespace{}
	if n.descriptor, err = netns.Get(); err != nil {
		return nil, err
	}
	if n.netlink, err = netlink.NewHandle(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	loopback, err := n.netlink.LinkByName("lo")
	if err == nil {
		err = n.netlink.LinkSetUp(loopback)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set the loopback interface up: %w", err), n.Close())
	}
	return n, nil
}

// Close lets go of the namespace. It goes when the processes in it have ended. A second time, it does nothing.
func (n *Namespace) Close() error {
	if !n.descriptor.IsOpen() {
		return nil
	}
	if n.netlink != nil {
		n.netlink.Close()
	}
	return n.descriptor.Close()
}

// Path is where the namespace is found, as long as this process holds it.
func (n *Namespace) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), int(n.descriptor))
}

// AddAddress gives the namespace an address on its loopback interface, so that it has it whatever is attached.
func (n *Namespace) AddAddress(address netip.Addr) error {
	loopback, err := n.netlink.LinkByName("lo")
	if err == nil {
		err = n.netlink.AddrAdd(loopback, &netlink.Addr{IPNet: single(address)})
	}
	if err != nil {
		return fmt.Errorf("add address %s: %w", address, err)
	}
	return nil
}

// wires numbers the interfaces of this process.
var wires atomic.Uint32

// Attach lays a wire from the namespace to another, which gets the addresses, one or two of different families, and its
// default routes to here. From here the addresses are reached over the wire, and so are the ranges, each by the address
// of its family.
func (n *Namespace) Attach(other *Namespace, addresses []netip.Addr, ranges ...netip.Prefix) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = fmt.Sprintf("wire%d", wires.Add(1))
	err := n.netlink.LinkAdd(
		&netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsFd(other.descriptor)})
	if err != nil {
		return fmt.Errorf("make a veth pair, which takes a kernel with CONFIG_VETH: %w", err)
	}
	here, err := n.netlink.LinkByName(attributes.Name)
	if err != nil {
		return err
	}
	there, err := other.netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	errs := []error{n.netlink.LinkSetUp(here), other.netlink.LinkSetUp(there)}
	for _, address := range addresses {
		gateway := gatewayOf(address)
		errs = append(errs,
			n.netlink.AddrAdd(here, &netlink.Addr{IPNet: single(gateway)}),
			other.netlink.AddrAdd(there, &netlink.Addr{IPNet: single(address)}),
			n.route(here.Attrs().Index, single(address), netip.Addr{}),
			other.route(there.Attrs().Index, single(gateway), netip.Addr{}),
			other.route(there.Attrs().Index, prefix(netip.PrefixFrom(gateway, 0).Masked()), gateway))
		for _, behind := range ranges {
			if behind.Addr().Is4() == address.Is4() {
				errs = append(errs, n.route(here.Attrs().Index, prefix(behind), address))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("attach %v: %w", addresses, err)
	}
	return nil
}

// route makes a route over a link, by way of an address if it is valid.
func (n *Namespace) route(link int, to *net.IPNet, by netip.Addr) error {
	route := &netlink.Route{LinkIndex: link, Dst: to, Scope: netlink.SCOPE_LINK}
	if by.IsValid() {
		route.Gw, route.Flags, route.Scope = by.AsSlice(), int(netlink.FLAG_ONLINK), netlink.SCOPE_UNIVERSE
	}
	if err := n.netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("make the route to %s: %w", to, err)
	}
	return nil
}

// Route has the namespace reach a range by way of an address that is attached to it.
func (n *Namespace) Route(by netip.Addr, behind netip.Prefix) error {
	routes, err := n.netlink.RouteGet(by.AsSlice())
	if err != nil {
		return fmt.Errorf("find the route to %s: %w", by, err)
	}
	return n.route(routes[0].LinkIndex, prefix(behind), by)
}

// Refuse has the namespace refuse packets that it would forward to the ranges, and answer that these are unreachable.
// What is given another address before it is forwarded is not refused.
func (n *Namespace) Refuse(ranges ...netip.Prefix) error {
	for _, refused := range ranges {
		if err := n.netlink.RouteReplace(
			&netlink.Route{Dst: prefix(refused.Masked()), Type: unix.RTN_UNREACHABLE}); err != nil {
			return fmt.Errorf("refuse packets to %s: %w", refused, err)
		}
	}
	return nil
}

func gatewayOf(address netip.Addr) netip.Addr {
	if address.Is4() {
		return gateways[0]
	}
	return gateways[1]
}

func single(address netip.Addr) *net.IPNet {
	return prefix(netip.PrefixFrom(address, address.BitLen()))
}

func prefix(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// Filter gives the namespace rules of nftables.
func (n *Namespace) Filter(rules string) error {
	line := n.Command("", "nft", "-f", "-")
	command := exec.Command(line[0], line[1:]...)
	command.Stdin = strings.NewReader(rules)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s\n%s", err, output, rules)
	}
	return nil
}

// enter is a shell that puts its first argument, a file, in the place of /etc/resolv.conf, and becomes the program of
// the others.
const enter = `mount --bind "$0" /etc/resolv.conf && exec "$@"`

// Command is the command line of a program in the namespace. With the name of a file it sees that as its
// /etc/resolv.conf. The process is the program itself, which shells and the like before it have become.
func (n *Namespace) Command(resolvConf, program string, args ...string) []string {
	command := []string{"nsenter", "--net=" + n.Path(), "--"}
	if resolvConf != "" {
		command = append(command, "unshare", "--mount", "--", "sh", "-c", enter, resolvConf)
	}
	return append(append(command, program), args...)
}

// In is the specification of a process that runs in the namespace, as [Namespace.Command] says.
func (n *Namespace) In(resolvConf string, spec process.Spec) process.Spec {
	command := n.Command(resolvConf, spec.Path, spec.Args...)
	spec.Path, spec.Args = command[0], command[1:]
	return spec
}
