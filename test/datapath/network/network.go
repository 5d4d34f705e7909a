// SPDX-License-Identifier: Apache-2.0

// Package network makes networks of Linux network namespaces: routers, and what is attached to them, down to single
// pods. A namespace has no name in the file system; it goes when nobody holds it and no process is in it.
package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// Namespace is a network namespace. Its methods may be called from any goroutine.
type Namespace struct{ file *os.File }

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
func New() (*Namespace, error) {
	return setUp(func() error { return unix.Unshare(unix.CLONE_NEWNET) })
}

// Own is the namespace of this process, made a router like those of New.
func Own() (*Namespace, error) {
	return setUp(func() error { return nil })
}

// setUp sets up the namespace into which a function leads its thread.
func setUp(lead func() error) (n *Namespace, err error) {
	err = inThread(func() error {
		if err := lead(); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		for name, value := range settings {
			if err := os.WriteFile(filepath.Join("/proc/sys/net", name), []byte(value), 0o644); err != nil {
				return err
			}
		}
		n, err = ofThread()
		return err
	})
	if err != nil {
		return nil, err
	}
	return n, n.ip("link set lo up")
}

// ofThread is the namespace that the thread is in.
func ofThread() (*Namespace, error) {
	file, err := os.Open("/proc/thread-self/ns/net")
	return &Namespace{file}, err
}

func (n *Namespace) enter() error { return unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET) }

// Do calls a function in a thread that is in the namespace: the sockets that it makes are of the namespace.
func (n *Namespace) Do(do func() error) error {
	return inThread(func() error {
		if err := n.enter(); err != nil {
			return err
		}
		return do()
	})
}

// inThread calls a function that may lead its thread into another namespace, and leads it back to where it was.
func inThread(do func() error) (err error) {
	runtime.LockOSThread()
	before, err := ofThread()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer before.Close()
	defer func() {
		if back := before.enter(); back != nil {
			err = errors.Join(err, back)
			return // the thread stays locked, so that no other goroutine gets it
		}
		runtime.UnlockOSThread()
	}()
	return do()
}

// Close lets go of the namespace. It goes when the processes in it have ended. A second time, it does nothing.
func (n *Namespace) Close() error {
	if err := n.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Path is where the namespace is found, as long as this process holds it.
func (n *Namespace) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// AddAddress gives the namespace addresses on its loopback interface, so that it has them whatever is attached.
func (n *Namespace) AddAddress(addresses ...netip.Addr) error {
	var commands []string
	for _, address := range addresses {
		commands = append(commands, fmt.Sprintf("address add %s dev lo", address))
	}
	return n.ip(commands...)
}

// wires numbers the interfaces of this process.
var wires atomic.Uint32

// Attach lays a wire from the namespace to another, which gets the addresses, one or two of different families, and its
// default routes to here. From here the addresses are reached over the wire, and so are the ranges, each by the address
// of its family.
func (n *Namespace) Attach(other *Namespace, addresses []netip.Addr, ranges ...netip.Prefix) error {
	wire := fmt.Sprintf("wire%d", wires.Add(1))
	here := []string{
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", wire, other.Path()), "link set " + wire + " up",
	}
	there := []string{"link set eth0 up"}
	for _, address := range addresses {
		// Every namespace knows the one that it is attached to by these addresses, which mean something on their wire only.
		gateway, all := "169.254.1.1", "0.0.0.0/0"
		if address.Is6() {
			gateway, all = "fe80::1", "::/0"
		}
		here = append(here, fmt.Sprintf("address add %s dev %s", gateway, wire), fmt.Sprintf("route replace %s dev %s", address, wire))
		there = append(there, fmt.Sprintf("address add %s dev eth0", address), fmt.Sprintf("route replace %s dev eth0", gateway),
			fmt.Sprintf("route replace %s via %s dev eth0", all, gateway))
		for _, behind := range ranges {
			if behind.Addr().Is4() == address.Is4() {
				here = append(here, routeTo(behind, address))
			}
		}
	}
	return errors.Join(n.ip(here...), other.ip(there...))
}

func routeTo(behind netip.Prefix, by netip.Addr) string {
	return fmt.Sprintf("route replace %s via %s", behind, by)
}

// Route has the namespace reach a range by way of an address that is attached to it.
func (n *Namespace) Route(by netip.Addr, behind netip.Prefix) error { return n.ip(routeTo(behind, by)) }

// Refuse has the namespace refuse packets that it would forward to the ranges, and answer that these are unreachable.
// What is given another address before it is forwarded is not refused.
func (n *Namespace) Refuse(ranges ...netip.Prefix) error {
	var commands []string
	for _, refused := range ranges {
		commands = append(commands, fmt.Sprintf("route replace unreachable %s", refused.Masked()))
	}
	return n.ip(commands...)
}

// ip has ip(8) carry out commands in the namespace, in one process.
func (n *Namespace) ip(commands ...string) error {
	return n.feed(strings.Join(commands, "\n"), "ip", "-batch", "-")
}

// Filter gives the namespace rules of nftables.
func (n *Namespace) Filter(rules string) error { return n.feed(rules, "nft", "-f", "-") }

// feed runs a program in the namespace that reads a text.
func (n *Namespace) feed(text, program string, args ...string) error {
	line := n.Command("", program, args...)
	command := exec.Command(line[0], line[1:]...)
	command.Stdin = strings.NewReader(text)
	if _, err := process.Output(command); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
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
